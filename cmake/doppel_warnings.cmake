# Warnings for our own C and C++ code. Not for users' kernels.
set(DOPPEL_WARNINGS
    -Wall -Wextra -Wshadow -Wvla -Wundef -Wpointer-arith
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes> $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>)
option(DOPPEL_WERROR "Treat warnings as errors" OFF)
if(DOPPEL_WERROR)
  list(APPEND DOPPEL_WARNINGS -Werror)
endif()
