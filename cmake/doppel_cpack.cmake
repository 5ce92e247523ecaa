# Read by cpack for each generator: the tarball is a relocatable folder, the Debian package installs to /opt/doppel.
if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_PACKAGING_INSTALL_PREFIX /opt/doppel)
else()
  set(CPACK_PACKAGING_INSTALL_PREFIX /)
endif()
