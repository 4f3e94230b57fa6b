# The rules for `cmake --install` that all systems share.

include(CMakePackageConfigHelpers)

# multicast_install_package(INCLUDE_DIR CONFIG_DIR): the headers for C and C++, and the CMake
# package except the targets.
function(multicast_install_package include_dir config_dir)
  install(FILES include/multicast.h include/multicast.hpp include/multicast.cppm
    DESTINATION ${include_dir} COMPONENT multicast_development)
  install(DIRECTORY include/multicast DESTINATION ${include_dir} COMPONENT multicast_development
    FILES_MATCHING PATTERN "*.hpp")
  configure_package_config_file(cmake/multicastConfig.cmake.in
    ${PROJECT_BINARY_DIR}/multicastConfig.cmake INSTALL_DESTINATION ${config_dir}
    NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${PROJECT_BINARY_DIR}/multicastConfigVersion.cmake
    COMPATIBILITY SameMajorVersion)
  install(FILES ${PROJECT_BINARY_DIR}/multicastConfig.cmake
    ${PROJECT_BINARY_DIR}/multicastConfigVersion.cmake
    DESTINATION ${config_dir} COMPONENT multicast_development)
  install(FILES cmake/Module.cmake RENAME multicastModule.cmake
    DESTINATION ${config_dir} COMPONENT multicast_development)
endfunction()
