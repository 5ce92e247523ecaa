# The SDK: its layout in the build tree, its installation and its packages.
#
# <build>/sdk looks like an installed prefix, so programs built with <build>/sdk/bin/ascc, and projects that find the
# CMake package there, work before anything is installed.
set(DOPPEL_SDK_DIR ${PROJECT_BINARY_DIR}/sdk)
set(DOPPEL_SDK_FILES ${PROJECT_SOURCE_DIR}/cmake/sdk)
file(MAKE_DIRECTORY ${DOPPEL_SDK_DIR}/bin ${DOPPEL_SDK_DIR}/lib64/pkgconfig)
# Headers of operators are made at build time, so include/ is a folder of links to the sources' and to them.
set(DOPPEL_GENERATED_DIR ${PROJECT_BINARY_DIR}/generated)
file(MAKE_DIRECTORY ${DOPPEL_GENERATED_DIR}/include/aclnnop ${DOPPEL_GENERATED_DIR}/include/op_proto)
if(IS_SYMLINK ${DOPPEL_SDK_DIR}/include)
  file(REMOVE ${DOPPEL_SDK_DIR}/include)
endif()
file(MAKE_DIRECTORY ${DOPPEL_SDK_DIR}/include)
file(GLOB entries CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/* ${DOPPEL_GENERATED_DIR}/include/aclnnop
     ${DOPPEL_GENERATED_DIR}/include/op_proto)
foreach(entry ${entries})
  get_filename_component(name ${entry} NAME)
  file(CREATE_LINK ${entry} ${DOPPEL_SDK_DIR}/include/${name} SYMBOLIC)
endforeach()

# Names under which programs link or load the library. All are the one library; a program that needs a function Doppel
# does not have fails to link with that function's name.
set(DOPPEL_SONAMES nnopbase opapi acl_op_compiler graph graph_base ge_compiler opsproto fmk_onnx_parser fmk_parser ge_runner
                   acl_cblas acl_dvpp acl_dvpp_mpi acl_retr runtime tiling_api register platform)
foreach(name ${DOPPEL_SONAMES})
  file(CREATE_LINK libascendcl.so ${DOPPEL_SDK_DIR}/lib64/lib${name}.so SYMBOLIC)
endforeach()
# One prefix under all the names that build files use for its parts.
foreach(name runtime acllib compiler lib64/stub)
  file(CREATE_LINK . ${DOPPEL_SDK_DIR}/${name} SYMBOLIC)
endforeach()
file(CREATE_LINK ascc ${DOPPEL_SDK_DIR}/bin/bisheng SYMBOLIC)
# ASCEND_OPP_PATH: build files look for the operator prototypes here, clients for packages of custom operators in vendors.
file(MAKE_DIRECTORY ${DOPPEL_SDK_DIR}/opp/built-in/op_proto ${DOPPEL_SDK_DIR}/opp/vendors)
file(CREATE_LINK ../../../lib64/libopsproto.so ${DOPPEL_SDK_DIR}/opp/built-in/op_proto/libopsproto.so SYMBOLIC)
file(CREATE_LINK ../../../include/op_proto/built-in/inc ${DOPPEL_SDK_DIR}/opp/built-in/op_proto/inc SYMBOLIC)
file(CREATE_LINK ../set_env.sh ${DOPPEL_SDK_DIR}/bin/setenv.bash SYMBOLIC)

foreach(module ASCConfig.cmake CMakeASCCompiler.cmake.in CMakeASCInformation.cmake CMakeDetermineASCCompiler.cmake
               CMakeTestASCCompiler.cmake)
  configure_file(${DOPPEL_SDK_FILES}/ASC/${module} ${DOPPEL_SDK_DIR}/share/cmake/ASC/${module} COPYONLY)
endforeach()
configure_file(${DOPPEL_SDK_FILES}/ASC/ASCConfigVersion.cmake.in ${DOPPEL_SDK_DIR}/share/cmake/ASC/ASCConfigVersion.cmake
               @ONLY)
configure_file(${DOPPEL_SDK_FILES}/tikcpp/ascendc.cmake ${DOPPEL_SDK_DIR}/tikcpp/ascendc_kernel_cmake/ascendc.cmake COPYONLY)
configure_file(${DOPPEL_SDK_FILES}/tikicpulib/tikicpulib-config.cmake
               ${DOPPEL_SDK_DIR}/share/cmake/tikicpulib/tikicpulib-config.cmake COPYONLY)
configure_file(${DOPPEL_SDK_FILES}/set_env.sh ${DOPPEL_SDK_DIR}/set_env.sh COPYONLY)
configure_file(${DOPPEL_SDK_FILES}/doppel.pc.in ${DOPPEL_SDK_DIR}/lib64/pkgconfig/doppel.pc @ONLY)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ ${DOPPEL_GENERATED_DIR}/include/ DESTINATION include)
install(DIRECTORY ${DOPPEL_SDK_DIR}/share ${DOPPEL_SDK_DIR}/tikcpp ${DOPPEL_SDK_DIR}/opp DESTINATION .)
install(FILES ${DOPPEL_SDK_DIR}/lib64/pkgconfig/doppel.pc DESTINATION lib64/pkgconfig)
install(FILES ${DOPPEL_SDK_DIR}/set_env.sh DESTINATION .)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION share/doc/doppel)
# Symbolic links are files of the build tree's SDK; install(FILES) keeps them as links.
foreach(name runtime acllib compiler)
  install(FILES ${DOPPEL_SDK_DIR}/${name} DESTINATION .)
endforeach()
install(FILES ${DOPPEL_SDK_DIR}/lib64/stub DESTINATION lib64)
install(FILES ${DOPPEL_SDK_DIR}/bin/bisheng ${DOPPEL_SDK_DIR}/bin/setenv.bash DESTINATION bin)
foreach(name ${DOPPEL_SONAMES})
  install(FILES ${DOPPEL_SDK_DIR}/lib64/lib${name}.so DESTINATION lib64)
endforeach()

# Called at the end of the top CMakeLists.txt, when the targets exist.
function(doppel_install_targets)
  install(TARGETS ascendcl LIBRARY DESTINATION lib64)
  foreach(program ascc doppel atc)
    if(TARGET ${program})
      set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${DOPPEL_SDK_DIR}/bin
                                                  INSTALL_RPATH "$ORIGIN/../lib64")
      install(TARGETS ${program} RUNTIME DESTINATION bin)
    endif()
  endforeach()
endfunction()

set(CPACK_GENERATOR "TGZ;DEB")
set(CPACK_PACKAGE_NAME doppel)
set(CPACK_PACKAGE_VENDOR "The Doppel project")
set(CPACK_PACKAGE_CONTACT "The Doppel project <doppel@example.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/doppel_cpack.cmake)
set(CPACK_STRIP_FILES OFF)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++ (>= 4:12) | clang (>= 1:14)")
set(CPACK_SOURCE_GENERATOR "")
include(CPack)
