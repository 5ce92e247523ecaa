# dp_asc_program(<name> SOURCES <files...> [FLAGS <flags...>] [LIBS <-l...>])
#
# A program built by our own ascc, as a user would call it; <build>/<folder>/<name>. Part of `all`; target build_<name>.
file(GLOB_RECURSE DOPPEL_FACE CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/*.h ${PROJECT_SOURCE_DIR}/include/*.hpp
     ${PROJECT_SOURCE_DIR}/include/*.def)
function(dp_asc_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;FLAGS;LIBS" ${ARGN})
  set(flags -O2 -g ${arg_FLAGS})
  if(DOPPEL_SANITIZE)
    list(APPEND flags -fsanitize=${DOPPEL_SANITIZE} -fno-omit-frame-pointer)
  endif()
  list(TRANSFORM arg_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  set(program ${CMAKE_CURRENT_BINARY_DIR}/${name})
  add_custom_command(
    OUTPUT ${program}
    COMMAND $<TARGET_FILE:ascc> ${flags} ${arg_SOURCES} -o ${program} ${arg_LIBS}
    DEPENDS ${arg_SOURCES} ${headers} ${DOPPEL_FACE} ascc ascendcl
    COMMENT "ascc ${name}" VERBATIM)
  add_custom_target(build_${name} ALL DEPENDS ${program})
endfunction()
