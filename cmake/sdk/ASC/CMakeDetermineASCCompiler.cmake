# Finds the compiler of the language ASC: CMAKE_ASC_COMPILER, else ascc of the SDK this file belongs to.
if(NOT CMAKE_ASC_COMPILER)
  get_filename_component(asc_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  set(CMAKE_ASC_COMPILER "${asc_root}/bin/ascc" CACHE FILEPATH "Compiler of Ascend C sources")
  unset(asc_root)
endif()
if(NOT EXISTS "${CMAKE_ASC_COMPILER}")
  message(FATAL_ERROR "The compiler of the language ASC is missing: ${CMAKE_ASC_COMPILER}. Install the SDK again, or set "
                      "CMAKE_ASC_COMPILER to its bin/ascc.")
endif()
mark_as_advanced(CMAKE_ASC_COMPILER)
set(CMAKE_ASC_COMPILER_ENV_VAR "ASCC")
set(CMAKE_ASC_COMPILER_ID "Doppel")

configure_file("${CMAKE_CURRENT_LIST_DIR}/CMakeASCCompiler.cmake.in"
               "${CMAKE_PLATFORM_INFO_DIR}/CMakeASCCompiler.cmake" @ONLY)
