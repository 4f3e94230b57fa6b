# The library as others get it: by CMake, by pkg-config, as Debian packages. Tests that lack a tool
# which they cannot install are skipped, and say so.

set(packages_dir ${PROJECT_SOURCE_DIR}/Tests/Interop/packages)
set(consumers ${PROJECT_SOURCE_DIR}/Tests/Interop/cmake/check)

# One installation for all tests that need no more than that; to look at how it is used, not made.
set(installed_prefix "${PROJECT_BINARY_DIR}/interop-packages/the prefix")

# add_packaging_test(name [TIMEOUT seconds] [INSTALLED] [APT] COMMAND ...)
#   INSTALLED: uses the installation. APT: may install packages on this machine.
function(add_packaging_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INSTALLED;APT" "TIMEOUT" "COMMAND")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 900)
  endif()
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  set_tests_properties(${name} PROPERTIES LABELS interop TIMEOUT ${arg_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "CMAKE=${CMAKE_COMMAND};SWIFTC=${MULTICAST_SWIFTC};CC=${CMAKE_C_COMPILER};CXX=${CMAKE_CXX_COMPILER}")
  if(arg_INSTALLED)
    set_tests_properties(${name} PROPERTIES FIXTURES_REQUIRED installation)
  endif()
  if(arg_APT)
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK apt)
  endif()
endfunction()

add_packaging_test(interop_install TIMEOUT 120
  COMMAND ${consumers} install ${PROJECT_BINARY_DIR} ${installed_prefix})
set_tests_properties(interop_install PROPERTIES FIXTURES_SETUP installation)

foreach(generator "Unix Makefiles" Ninja)
  if(generator STREQUAL Ninja)
    set(name ninja)
  else()
    set(name make)
  endif()
  add_packaging_test(interop_cmake_add_subdirectory_${name}
    COMMAND ${consumers} add-subdirectory ${generator})
  add_packaging_test(interop_cmake_fetch_content_${name}
    COMMAND ${consumers} fetch-content ${generator})
  add_packaging_test(interop_cmake_find_package_${name} TIMEOUT 300 INSTALLED
    COMMAND ${consumers} find-package ${generator} ${installed_prefix})
  # CMake has no Swift under Makefiles: there the project calls swiftc.
  add_packaging_test(interop_cmake_swift_${name} TIMEOUT 300 INSTALLED
    COMMAND ${consumers} swift ${generator} ${installed_prefix})
endforeach()
add_packaging_test(interop_cmake_multi_config_ninja COMMAND ${consumers} multi-config)
add_packaging_test(interop_cmake_no_leaks COMMAND ${consumers} no-leaks)
add_packaging_test(interop_cmake_build_shared_libs COMMAND ${consumers} build-shared-libs)
add_packaging_test(interop_cmake_components TIMEOUT 300 INSTALLED
  COMMAND ${consumers} components ${installed_prefix})
add_packaging_test(interop_cmake_relocated COMMAND ${consumers} relocated)
add_packaging_test(interop_cmake_cross_refused TIMEOUT 300 COMMAND ${consumers} cross-refused)
add_packaging_test(interop_cmake_cross_same COMMAND ${consumers} cross-same)
add_packaging_test(interop_cmake_cross_aarch64 APT TIMEOUT 1800 COMMAND ${consumers} cross-aarch64)

add_packaging_test(interop_pkg_config APT TIMEOUT 1200 INSTALLED
  COMMAND ${packages_dir}/pkg-config ${installed_prefix})
add_packaging_test(interop_debian_package APT TIMEOUT 1800 COMMAND ${packages_dir}/debian)
# It changes what compilers and CMake find on this machine.
set_tests_properties(interop_debian_package PROPERTIES RUN_SERIAL TRUE)
