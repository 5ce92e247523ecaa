# find_package(tikicpulib): kernels called from host programs by ICPU_RUN_KF, built by a plain C++ compiler.
# Targets: tikicpulib::<chip>; all of them are the same library, the chip is chosen at run time by DOPPEL_SOC.
get_filename_component(tikicpulib_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
foreach(chip ascend910B1 ascend910B2 ascend910B3 ascend910B4 ascend310P1 ascend310P3 Ascend910B1 Ascend910B2 Ascend910B3
             Ascend910B4 Ascend310P1 Ascend310P3)
  if(NOT TARGET tikicpulib::${chip})
    add_library(tikicpulib::${chip} INTERFACE IMPORTED)
    set_target_properties(tikicpulib::${chip} PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES "${tikicpulib_root}/include"
      INTERFACE_COMPILE_DEFINITIONS "ASCENDC_CPU_DEBUG=1"
      INTERFACE_COMPILE_FEATURES cxx_std_17
      INTERFACE_LINK_LIBRARIES "${tikicpulib_root}/lib64/libascendcl.so")
  endif()
endforeach()
