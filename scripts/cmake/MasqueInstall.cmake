# What is installed besides tools and layers (MasqueTargets.cmake), and the Debian packages: masque with
# the tools, masque-dev with the libraries. `cpack` in the build folder, or scripts/package.
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/masque)
configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/scripts/cmake/masqueConfig.cmake.in ${PROJECT_BINARY_DIR}/masqueConfig.cmake
  INSTALL_DESTINATION ${package_folder})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/masqueConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT masqueTargets NAMESPACE masque:: DESTINATION ${package_folder} COMPONENT dev)
install(FILES ${PROJECT_BINARY_DIR}/masqueConfig.cmake ${PROJECT_BINARY_DIR}/masqueConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/scripts/cmake/FindOniguruma.cmake ${PROJECT_SOURCE_DIR}/scripts/cmake/FindxxHash.cmake
  DESTINATION ${package_folder} COMPONENT dev)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/masque
  RENAME copyright COMPONENT tools)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/masque-dev
  RENAME copyright COMPONENT dev)

if(NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL tools dev)
set(CPACK_PACKAGE_CONTACT "masque maintainers <maintainers@masque.invalid>")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/scripts/cmake/cpack_options.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/scripts/cmake/debian_folders.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_TOOLS_PACKAGE_NAME masque)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_TOOLS_DESCRIPTION "Command-line programs that draw attention masks and find leaks, train small
models, score and write text, measure attention heads, and edit or convert
checkpoints, on a CPU, without Python and without a network.")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME masque-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libboost-program-options-dev, libdnnl-dev, libfmt-dev, libhwy-dev, libonig-dev, libpng-dev, libsimdjson-dev, libsnappy-dev, libssl-dev, libxxhash-dev, libzstd-dev, ocl-icd-opencl-dev, zlib1g-dev")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers, static libraries and the CMake package of masque.")
include(CPack)
