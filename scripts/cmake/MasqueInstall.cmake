# What is installed besides tools and layers (MasqueTargets.cmake): the CMake package.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/masque)
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/scripts/cmake/masqueConfig.cmake.in ${PROJECT_BINARY_DIR}/masqueConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/masqueConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT masqueTargets NAMESPACE masque:: DESTINATION ${package_folder} COMPONENT dev)
install(FILES ${PROJECT_BINARY_DIR}/masqueConfig.cmake ${PROJECT_BINARY_DIR}/masqueConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/scripts/cmake/FindxxHash.cmake
  DESTINATION ${package_folder} COMPONENT dev)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/masque
  RENAME copyright COMPONENT tools)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/masque-dev
  RENAME copyright COMPONENT dev)
