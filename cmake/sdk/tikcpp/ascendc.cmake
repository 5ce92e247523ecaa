# ascendc_library(<name> STATIC|SHARED|OBJECT <files>...): a library of kernels, with a header per kernel.
#
# Every kernel of the files that is not a template gets aclrtlaunch_<kernel>.h below ${CMAKE_BINARY_DIR}/include/<name>,
# which targets that link the library find:
#     ACLRT_LAUNCH_KERNEL(<kernel>)(blockDim, stream, arguments...)
#
# ascendc_include_directories, ascendc_compile_definitions, ascendc_compile_options(<name> PRIVATE|PUBLIC|INTERFACE ...)
# add to how the kernels are compiled. SOC_VERSION and RUN_MODE of older projects have no effect.
include_guard(GLOBAL)
if(CMAKE_VERSION VERSION_LESS 3.20)
  message(FATAL_ERROR "ascendc.cmake needs CMake 3.20 or newer; this is ${CMAKE_VERSION}")
endif()
# Dependency files of custom commands may hold absolute paths with every generator.
cmake_policy(SET CMP0116 NEW)

get_filename_component(ASCENDC_ROOT_DIR "${CMAKE_CURRENT_LIST_DIR}/../.." REALPATH)
set(ASCENDC_COMPILER "${ASCENDC_ROOT_DIR}/bin/ascc" CACHE INTERNAL "")
set(ASCENDC_INCLUDE_DIR "${ASCENDC_ROOT_DIR}/include" CACHE INTERNAL "")
set(ASCENDC_LIBRARY "${ASCENDC_ROOT_DIR}/lib64/libascendcl.so" CACHE INTERNAL "")

# What older projects link for the host side of a kernel library.
if(NOT TARGET host_intf_pub)
  add_library(host_intf_pub INTERFACE)
  target_include_directories(host_intf_pub INTERFACE "${ASCENDC_INCLUDE_DIR}")
endif()

function(ascendc_library name kind)
  if(NOT kind MATCHES "^(STATIC|SHARED|OBJECT)$")
    message(FATAL_ERROR "ascendc_library(${name} ${kind} ...): the second argument must be STATIC, SHARED or OBJECT")
  endif()
  if(NOT ARGN)
    message(FATAL_ERROR "ascendc_library(${name} ${kind}): no source files are given")
  endif()
  set(header_dir "${CMAKE_BINARY_DIR}/include/${name}")
  set(object_dir "${CMAKE_CURRENT_BINARY_DIR}${CMAKE_FILES_DIRECTORY}/${name}.ascendc")
  file(MAKE_DIRECTORY "${header_dir}" "${object_dir}")

  set(includes "$<TARGET_PROPERTY:${name},ASCENDC_INCLUDES>")
  set(definitions "$<TARGET_PROPERTY:${name},ASCENDC_DEFINITIONS>")
  set(options "$<TARGET_PROPERTY:${name},ASCENDC_OPTIONS>")
  set(build_type "$<$<CONFIG:Debug>:-g;-O0>$<$<CONFIG:RelWithDebInfo>:-g>")
  set(objects)
  set(number 0)
  foreach(file IN LISTS ARGN)
    get_filename_component(source "${file}" ABSOLUTE)
    get_filename_component(stem "${file}" NAME)
    set(object "${object_dir}/${number}-${stem}.o")
    math(EXPR number "${number} + 1")
    add_custom_command(
      OUTPUT "${object}"
      COMMAND "${ASCENDC_COMPILER}" -c "${build_type}"
              "$<$<BOOL:${includes}>:-I$<JOIN:${includes},;-I>>"
              "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>"
              "${options}" "--launch-headers=${header_dir}"
              -MD -MF "${object}.d" -MT "${object}" -x asc "${source}" -o "${object}"
      DEPENDS "${source}" "${ASCENDC_COMPILER}"
      DEPFILE "${object}.d"
      COMMENT "Building Ascend C kernels ${file}"
      COMMAND_EXPAND_LISTS VERBATIM)
    list(APPEND objects "${object}")
  endforeach()

  # Headers exist before any source of a target that links the library is compiled.
  add_custom_target(${name}_kernels DEPENDS ${objects})
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)
  if(kind STREQUAL "OBJECT")
    add_library(${name} INTERFACE)
    target_sources(${name} INTERFACE ${objects})
  else()
    add_library(${name} ${kind} ${objects})
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX POSITION_INDEPENDENT_CODE ON)
  endif()
  add_dependencies(${name} ${name}_kernels)
  target_include_directories(${name} INTERFACE "${header_dir}" "${CMAKE_BINARY_DIR}/include" "${ASCENDC_INCLUDE_DIR}")
  if(kind STREQUAL "SHARED")
    target_link_libraries(${name} PUBLIC "${ASCENDC_LIBRARY}")
  else()
    target_link_libraries(${name} INTERFACE "${ASCENDC_LIBRARY}")
  endif()
endfunction()

function(ascendc_add_property name property flag)
  foreach(value IN LISTS ARGN)
    if(value MATCHES "^(PRIVATE|PUBLIC|INTERFACE)$")
      continue()
    endif()
    if(flag)
      string(REGEX REPLACE "^-${flag}" "" value "${value}")
    endif()
    if(flag STREQUAL "I")
      get_filename_component(value "${value}" ABSOLUTE)
    endif()
    set_property(TARGET ${name} APPEND PROPERTY ${property} "${value}")
  endforeach()
endfunction()

function(ascendc_include_directories name)
  ascendc_add_property(${name} ASCENDC_INCLUDES I ${ARGN})
endfunction()
function(ascendc_compile_definitions name)
  ascendc_add_property(${name} ASCENDC_DEFINITIONS D ${ARGN})
endfunction()
function(ascendc_compile_options name)
  ascendc_add_property(${name} ASCENDC_OPTIONS "" ${ARGN})
endfunction()
