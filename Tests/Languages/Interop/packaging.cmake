# Tests the ways in which users get the library: CMake, pkg-config and Debian packages. A test is
# skipped with a message if a tool is missing and cannot be installed.

set(packages_dir ${PROJECT_SOURCE_DIR}/Tests/Languages/Interop/packages)
set(consumers ${PROJECT_SOURCE_DIR}/Tests/Languages/Interop/cmake/check)

# All tests that only need an installation share the installation in this folder.
set(installed_prefix "${PROJECT_BINARY_DIR}/interop-packages/the prefix")

# add_packaging_test(name [COST seconds] [INSTALLED] [PACKAGES package ...] COMMAND ...)
#   INSTALLED: the test uses the shared installation.
function(add_packaging_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "INSTALLED" "COST;SETUP" "PACKAGES;COMMAND")
  if(NOT arg_COST)
    set(arg_COST 5)
  endif()
  set(fixture)
  if(arg_INSTALLED)
    set(fixture installation)
  endif()
  add_check(${name} LABELS interop TIMEOUT 1200 COST ${arg_COST} SETUP "${arg_SETUP}"
    NEEDS ${fixture} PACKAGES ${arg_PACKAGES} COMMAND ${arg_COMMAND}
    ENVIRONMENT "CMAKE=${CMAKE_COMMAND}" "SWIFTC=${MULTICAST_SWIFTC}" "CC=${CMAKE_C_COMPILER}"
      "CXX=${CMAKE_CXX_COMPILER}" "MULTICAST_SWIFTC_CACHE=${PROJECT_BINARY_DIR}/swiftc-cache")
endfunction()

add_packaging_test(interop_install SETUP installation
  COMMAND ${consumers} install ${PROJECT_BINARY_DIR} ${installed_prefix})

foreach(generator "Unix Makefiles" Ninja)
  if(generator STREQUAL Ninja)
    set(name ninja)
    set(packages)
  else()
    set(name make)
    set(packages make)
  endif()
  add_packaging_test(interop_cmake_add_subdirectory_${name} COST 20 PACKAGES ${packages}
    COMMAND ${consumers} add-subdirectory ${generator})
  add_packaging_test(interop_cmake_fetch_content_${name} COST 20 PACKAGES ${packages}
    COMMAND ${consumers} fetch-content ${generator})
  add_packaging_test(interop_cmake_find_package_${name} INSTALLED PACKAGES ${packages}
    COMMAND ${consumers} find-package ${generator} ${installed_prefix})
  # CMake does not support Swift with Makefiles, so the project itself calls swiftc.
  add_packaging_test(interop_cmake_swift_${name} COST 10 INSTALLED PACKAGES ${packages}
    COMMAND ${consumers} swift ${generator} ${installed_prefix})
endforeach()
add_packaging_test(interop_cmake_multi_config_ninja COST 30 COMMAND ${consumers} multi-config)
add_packaging_test(interop_cmake_no_leaks COST 20 COMMAND ${consumers} no-leaks)
add_packaging_test(interop_cmake_build_shared_libs COST 40 COMMAND ${consumers} build-shared-libs)
add_packaging_test(interop_cmake_components COST 10 INSTALLED
  COMMAND ${consumers} components ${installed_prefix})
add_packaging_test(interop_cmake_relocated COST 20 COMMAND ${consumers} relocated)
add_packaging_test(interop_cmake_cross_refused COST 5 COMMAND ${consumers} cross-refused)
add_packaging_test(interop_cmake_32_bit_refused COST 5 COMMAND ${consumers} 32-bit-refused)
add_packaging_test(interop_cmake_cross_same COST 20 COMMAND ${consumers} cross-same)
add_packaging_test(interop_cmake_cross_aarch64 COST 20
  PACKAGES gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user
  COMMAND ${consumers} cross-aarch64)

# These tests build the library without Swift, from the archive of a release.
set(archive_dir ${PROJECT_BINARY_DIR}/interop-archive)
function(add_archive_check check cost)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "SETUP" "NEEDS;PACKAGES;LIBRARIES")
  set(name interop_archive)
  if(NOT check STREQUAL make)
    string(APPEND name _${check})
  endif()
  add_check(${name} LABELS interop TIMEOUT 1200 COST ${cost} SETUP "${arg_SETUP}" NEEDS ${arg_NEEDS}
    PACKAGES ${arg_PACKAGES}
    COMMAND ${PROJECT_SOURCE_DIR}/Tests/Languages/Interop/archive/run ${check} ${archive_dir} ${arg_LIBRARIES}
    ENVIRONMENT "CMAKE=${CMAKE_COMMAND}" "SWIFTC=${MULTICAST_SWIFTC}" "CC=${CMAKE_C_COMPILER}"
      "CXX=${CMAKE_CXX_COMPILER}")
endfunction()
add_archive_check(make 270 SETUP archive
  LIBRARIES $<TARGET_FILE:multicast> $<TARGET_FILE:multicast_static>
  PACKAGES git xz-utils ninja-build linux-libc-dev gcc-aarch64-linux-gnu gcc-riscv64-linux-gnu
    libc6-dev-arm64-cross libc6-dev-riscv64-cross gcc-i686-linux-gnu libc6-dev-i386-cross
    gcc-arm-linux-gnueabihf libc6-dev-armhf-cross gcc-mingw-w64-x86-64 doxygen python3 python3-venv)
add_archive_check(installed 20 NEEDS archive PACKAGES ninja-build pkgconf)
add_archive_check(spdx 20 NEEDS archive PACKAGES python3-venv)
add_archive_check(conan 30 NEEDS archive PACKAGES python3-venv)
add_archive_check(vcpkg 10 NEEDS archive PACKAGES python3)
add_archive_check(windows 60 NEEDS archive
  PACKAGES ${windows_packages} ${windows_wine_packages} mingw-w64-common clang-19 lld-19)

foreach(processor arm64 x86_64)
  add_check(interop_archive_macos_${processor} LABELS interop TIMEOUT 900 COST 100 NEEDS archive
    PACKAGES cmake ninja-build gcc python3 python3-venv
    COMMAND ${PROJECT_SOURCE_DIR}/Tests/Languages/Builds/macos/run ${processor}
      ${PROJECT_BINARY_DIR}/interop-archive-macos-${processor} ${archive_dir}/one/multicast
    ENVIRONMENT SWIFTC=OFF)
endforeach()

# These tests are for other processors and libcs. The tests build the library from the archive. For
# musl, another test builds the library from Swift. CONTRIBUTING.md describes how to run more tests
# on such systems.
set(elsewhere ${PROJECT_SOURCE_DIR}/Tests/Languages/Interop/elsewhere)
add_check(interop_glibc_versions LABELS interop everyday
  COMMAND ${elsewhere}/glibc-versions $<TARGET_FILE:multicast>)
function(add_place name place cost)
  set(source ${PROJECT_SOURCE_DIR})
  set(fixture)
  set(swiftc ${MULTICAST_SWIFTC})
  if(name MATCHES "^archive_")
    set(source ${archive_dir}/one/multicast)
    set(fixture archive)
    set(swiftc OFF)
  endif()
  add_check(interop_${name} LABELS interop TIMEOUT 1800 COST ${cost} NEEDS ${fixture} PACKAGES ${ARGN}
    COMMAND ${source}/Tests/Languages/Interop/elsewhere/run ${place} ${PROJECT_BINARY_DIR}/interop-${name}
    ENVIRONMENT SWIFTC=${swiftc})
  # The script runs its tests on two processors.
  set_tests_properties(interop_${name} PROPERTIES PROCESSORS 2)
endfunction()
add_place(musl musl 60 musl-tools linux-libc-dev)
add_place(archive_musl musl 60 musl-tools linux-libc-dev)
add_place(archive_arm64 arm64 150 gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user)
add_place(i386 i386 60 gcc-i686-linux-gnu g++-i686-linux-gnu libc6-dev-i386-cross libc6-i386 lib32stdc++6
  abigail-tools)
add_place(armv7 armv7 180 gcc-arm-linux-gnueabihf g++-arm-linux-gnueabihf libc6-dev-armhf-cross qemu-user
  abigail-tools)
add_place(archive_riscv64 riscv64 150 gcc-riscv64-linux-gnu g++-riscv64-linux-gnu libc6-dev-riscv64-cross qemu-user)

add_packaging_test(interop_pkg_config INSTALLED PACKAGES pkgconf
  COMMAND ${packages_dir}/pkg-config ${installed_prefix})
add_packaging_test(interop_debian_package COST 60 PACKAGES dpkg-dev lintian file doxygen python3 man-db
    systemtap-sdt-dev gdb libmosquitto-dev libnats-dev
  COMMAND ${packages_dir}/debian)
# This test installs packages, so other tests that run at the same time would find different files.
set_tests_properties(interop_debian_package PROPERTIES RUN_SERIAL TRUE)
