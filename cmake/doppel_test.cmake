# dp_test(<name> SOURCES <files...> [LIBS <targets...>] [TIMEOUT <seconds>] [ENV <K=V...>] [LABELS <labels...>])
#
# One cmocka program, run as one ctest test in its own process with a time limit (default 60 s).
# The longer it may take, the earlier it starts, so that no processor waits for it at the end.
# It links the internal static library, so tests may include the headers of src/.
function(dp_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;LIBS;ENV;LABELS" ${ARGN})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 60)
  endif()
  add_executable(test_${name} ${arg_SOURCES})
  target_link_libraries(test_${name} PRIVATE doppel_internal cmocka ${arg_LIBS})
  target_compile_options(test_${name} PRIVATE ${DOPPEL_WARNINGS})
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} COST ${arg_TIMEOUT} LABELS "${arg_LABELS}" ENVIRONMENT "${arg_ENV}")
endfunction()
