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

set(DOPPEL_X86_RUNGS OFF)
if(DOPPEL_SIMD AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(DOPPEL_X86_RUNGS ON)
endif()

# Sanitizer lanes: code that is not instrumented is taken from a build without sanitizers, made by the same compiler. That goes for what has
# -fno-sanitize=all, and for rungs that tests do not run: they run the best one that the processor has, and those below it in the math
# floor's tables.
set(DOPPEL_PLAIN_BUILD "" CACHE PATH "Folder of a build without sanitizers, whose objects serve where nothing is instrumented")
set(DOPPEL_BEST_RUNG 2)
if(DOPPEL_PLAIN_BUILD AND DOPPEL_X86_RUNGS AND EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo processor REGEX "^flags" LIMIT_COUNT 1)
  foreach(feature avx512f avx512bw avx512vl avx512dq)
    if(NOT processor MATCHES " ${feature}( |$)")
      set(DOPPEL_BEST_RUNG 1)
    endif()
  endforeach()
endif()

# doppel_rung_flags(FLOOR RUNG FLAGS OUT): FLAGS with what a lane needs for loops of this rung (0 is the generic one).
function(doppel_rung_flags floor rung flags out)
  if(DOPPEL_PLAIN_BUILD AND DOPPEL_X86_RUNGS AND
     (rung GREATER DOPPEL_BEST_RUNG OR (rung LESS DOPPEL_BEST_RUNG AND NOT floor STREQUAL "math")))
    list(APPEND flags -fno-sanitize=all)
  elseif(DOPPEL_SANITIZE MATCHES "undefined" AND rung GREATER 0 AND floor STREQUAL "math")
    list(APPEND flags -fno-sanitize=undefined) # the generic one, which tests run too, has the same arithmetic; addresses are what differs
  endif()
  set(${out} ${flags} PARENT_SCOPE)
endfunction()

# doppel_loop_sources(FLAGS FILE...): files of loops, by their names in the source folder or whole ones in the build folder.
function(doppel_loop_sources flags)
  foreach(source ${ARGN})
    if(DOPPEL_PLAIN_BUILD AND "-fno-sanitize=all" IN_LIST flags)
      set(base ${PROJECT_SOURCE_DIR})
      if(IS_ABSOLUTE ${source})
        set(base ${PROJECT_BINARY_DIR})
      else()
        set(source ${CMAKE_CURRENT_SOURCE_DIR}/${source})
      endif()
      file(RELATIVE_PATH path ${base} ${source})
      set_property(GLOBAL APPEND PROPERTY DOPPEL_PLAIN_OBJECTS ${DOPPEL_PLAIN_BUILD}/CMakeFiles/doppel_objects.dir/${path}.o)
    else()
      target_sources(doppel_objects PRIVATE ${source})
      set_property(SOURCE ${source} TARGET_DIRECTORY doppel_objects PROPERTY COMPILE_OPTIONS ${flags})
    endif()
  endforeach()
endfunction()

# doppel_rungs(FLOOR FAMILIES FLAGS PICKERS): FAMILIES are files of src/FLOOR without their ending; PICKERS are files that choose among
# their tables and are told of the x86 ones (DP_MATH_HAVE_X86).
function(doppel_rungs floor families flags pickers)
  doppel_rung_flags(${floor} 0 "${flags}" generic_flags)
  if(DOPPEL_X86_RUNGS AND NOT DOPPEL_SANITIZE) # the last resort of old processors: not worth -O3's third more of compiling
    list(APPEND generic_flags -O2)
  endif()
  foreach(family ${families})
    doppel_loop_sources("${generic_flags}" ${family}.c)
  endforeach()
  if(NOT DOPPEL_X86_RUNGS)
    return()
  endif()
  set_property(SOURCE ${pickers} TARGET_DIRECTORY doppel_objects PROPERTY COMPILE_DEFINITIONS DP_MATH_HAVE_X86)
  foreach(rung avx2 avx512)
    doppel_rung_flags(${floor} ${DOPPEL_RUNG_${rung}} "${flags};${DOPPEL_RUNG_FLAGS_${rung}}" rung_flags)
    foreach(family ${families})
      string(REPLACE / _ flat ${family})
      set(wrapper ${CMAKE_CURRENT_BINARY_DIR}/${flat}_${rung}.c)
      file(CONFIGURE OUTPUT ${wrapper} CONTENT
           "#define DP_MATH_RUNG ${DOPPEL_RUNG_${rung}}\n#include \"${floor}/${family}.c\"\n")
      doppel_loop_sources("${rung_flags}" ${wrapper})
    endforeach()
  endforeach()
endfunction()
