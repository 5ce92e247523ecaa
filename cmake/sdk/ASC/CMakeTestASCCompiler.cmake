# Compiles and links one kernel with its launch, so that a broken installation is reported here and not in the user's build.
if(CMAKE_ASC_COMPILER_FORCED)
  set(CMAKE_ASC_COMPILER_WORKS TRUE)
  return()
endif()
if(NOT CMAKE_ASC_COMPILER_WORKS)
  set(asc_dir "${CMAKE_BINARY_DIR}${CMAKE_FILES_DIRECTORY}/TestASC")
  file(WRITE "${asc_dir}/main.asc"
       "__global__ __aicore__ void nothing(int x) { (void)x; }\nint main() { nothing<<<1, nullptr, nullptr>>>(1); }\n")
  execute_process(COMMAND "${CMAKE_ASC_COMPILER}" "${asc_dir}/main.asc" -o "${asc_dir}/main"
                  RESULT_VARIABLE asc_result OUTPUT_VARIABLE asc_output ERROR_VARIABLE asc_output)
  if(NOT asc_result EQUAL 0)
    message(FATAL_ERROR "The ASC compiler\n  ${CMAKE_ASC_COMPILER}\ncannot build a simple program:\n${asc_output}")
  endif()
  message(STATUS "The ASC compiler is ${CMAKE_ASC_COMPILER}")
  set(CMAKE_ASC_COMPILER_WORKS TRUE CACHE INTERNAL "")
endif()
