# The build tree holds an SDK as it will be installed: <build>/sdk with bin/, include/ and lib64/. Programs built with
# <build>/sdk/bin/ascc find headers and library there.
set(DOPPEL_SDK_DIR ${PROJECT_BINARY_DIR}/sdk)
file(MAKE_DIRECTORY ${DOPPEL_SDK_DIR}/bin ${DOPPEL_SDK_DIR}/lib64)
file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include ${DOPPEL_SDK_DIR}/include SYMBOLIC)
