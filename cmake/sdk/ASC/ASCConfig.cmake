# find_package(ASC): the language ASC (sources *.asc) and the libraries of this SDK.
#
# Both orders work:
#     find_package(ASC REQUIRED)                 project(x LANGUAGES CXX)
#     project(x LANGUAGES ASC CXX)               find_package(ASC REQUIRED)    # enables the language
#
# Targets: ASC::ascendcl (headers and library, for sources of other languages).
# Variables: ASC_ROOT_DIR, ASC_INCLUDE_DIR, ASC_LIBRARY_DIR, ASC_COMPILER.
get_filename_component(ASC_ROOT_DIR "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(ASC_INCLUDE_DIR "${ASC_ROOT_DIR}/include")
set(ASC_LIBRARY_DIR "${ASC_ROOT_DIR}/lib64")
set(ASC_COMPILER "${ASC_ROOT_DIR}/bin/ascc")

# enable_language(ASC), by project() or below, looks for its modules here.
if(NOT "${CMAKE_CURRENT_LIST_DIR}" IN_LIST CMAKE_MODULE_PATH)
  list(APPEND CMAKE_MODULE_PATH "${CMAKE_CURRENT_LIST_DIR}")
endif()

if(NOT TARGET ASC::ascendcl)
  add_library(ASC::ascendcl INTERFACE IMPORTED)
  set_target_properties(ASC::ascendcl PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${ASC_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES "${ASC_LIBRARY_DIR}/libascendcl.so")
endif()

# After project(): PROJECT_NAME is set and the language can be enabled at once.
if(PROJECT_NAME)
  get_property(asc_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(NOT "ASC" IN_LIST asc_languages)
    enable_language(ASC)
  endif()
  unset(asc_languages)
endif()
