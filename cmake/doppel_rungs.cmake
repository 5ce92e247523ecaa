# Loops that are compiled once per rung: as they are for the generic one, and through a two-line wrapper made here for each x86 rung, because
# one target cannot hold a source twice.
set(DOPPEL_LOOP_FLAGS ${DOPPEL_LOOP_LEVEL} -fno-math-errno -fno-trapping-math)
if(CMAKE_C_COMPILER_ID MATCHES Clang) # a loop of one-lane code that resists the vectoriser is no news
  list(APPEND DOPPEL_LOOP_FLAGS -Wno-pass-failed)
endif()
# No contraction: every rung must round at the same places.
set(DOPPEL_EXACT_FLAGS ${DOPPEL_LOOP_FLAGS} -ffp-contract=off)
set(DOPPEL_RUNG_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(DOPPEL_RUNG_FLAGS_avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c -mprefer-vector-width=512)
set(DOPPEL_RUNG_avx2 1)
set(DOPPEL_RUNG_avx512 2)

# doppel_rungs(FLOOR FAMILIES FLAGS PICKERS): FAMILIES are files of src/FLOOR without their ending; PICKERS are files that choose among
# their tables and are told of the x86 ones (DP_MATH_HAVE_X86).
function(doppel_rungs floor families flags pickers)
  foreach(family ${families})
    target_sources(doppel_objects PRIVATE ${family}.c)
    set_property(SOURCE ${family}.c TARGET_DIRECTORY doppel_objects PROPERTY COMPILE_OPTIONS ${flags})
  endforeach()
  if(NOT DOPPEL_SIMD OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return()
  endif()
  set_property(SOURCE ${pickers} TARGET_DIRECTORY doppel_objects PROPERTY COMPILE_DEFINITIONS DP_MATH_HAVE_X86)
  foreach(rung avx2 avx512)
    foreach(family ${families})
      string(REPLACE / _ flat ${family})
      set(wrapper ${CMAKE_CURRENT_BINARY_DIR}/${flat}_${rung}.c)
      file(CONFIGURE OUTPUT ${wrapper} CONTENT
           "#define DP_MATH_RUNG ${DOPPEL_RUNG_${rung}}\n#include \"${floor}/${family}.c\"\n")
      target_sources(doppel_objects PRIVATE ${wrapper})
      set_property(SOURCE ${wrapper} TARGET_DIRECTORY doppel_objects PROPERTY COMPILE_OPTIONS
                   ${flags} ${DOPPEL_RUNG_FLAGS_${rung}})
    endforeach()
  endforeach()
endfunction()
