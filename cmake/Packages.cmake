# Configures the packages that `cpack` makes: an archive of everything, or Debian packages:
#
#   cmake -S . -B build -DCMAKE_INSTALL_PREFIX=/usr -DMULTICAST_DOCS=ON \
#     -DCMAKE_BUILD_TYPE=RelWithDebInfo -DMULTICAST_MAINTAINER="Ada <ada@example.org>"
#   cmake --build build
#   cpack --config build/CPackConfig.cmake -G DEB -B packages
#
# These are binary packages. There is no source package with a Build-Depends field, so the tools
# have to be installed beforehand: doxygen and python3 for the man pages, systemtap-sdt-dev for the
# probes.
#
# Programs need libmulticast1 to run, and libmulticast-dev to be built. With MULTICAST_LOCAL there
# are also libmulticast-local1 and libmulticast-local-dev, and likewise with MULTICAST_MQTT and
# MULTICAST_NATS. Without MULTICAST_DOCS, libmulticast-dev has no man pages. For each package with
# machine code there is a package with its symbols, such as libmulticast1-dbgsym_1.1.0_amd64.ddeb,
# which dpkg and apt install like any .deb. Whether the symbols include line numbers depends on the
# build type.

set(CPACK_PACKAGE_NAME multicast)
set(CPACK_PACKAGE_VENDOR "The libmulticast authors")
# Determines the maintainer as Debian's tools do.
set(multicast_maintainer "$ENV{DEBFULLNAME}")
if(NOT multicast_maintainer)
  set(multicast_maintainer "libmulticast maintainers")
endif()
set(multicast_address "$ENV{DEBEMAIL}")
if(NOT multicast_address)
  cmake_host_system_information(RESULT multicast_address QUERY FQDN)
  string(PREPEND multicast_address "libmulticast@")
endif()
set(MULTICAST_MAINTAINER "${multicast_maintainer} <${multicast_address}>" CACHE STRING
  "Who makes the Debian packages: Name <address>")
set(CPACK_PACKAGE_CONTACT "${MULTICAST_MAINTAINER}")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/PackagesPermissions.cmake)
set(CPACK_GENERATOR TGZ)
set(CPACK_SOURCE_GENERATOR TGZ)
set(CPACK_SOURCE_IGNORE_FILES "/[.]git/;/[.]build/;/build[^/]*/")

# ---- Debian ---------------------------------------------------------------------------------------

set(CPACK_PROJECT_CONFIG_FILE ${PROJECT_SOURCE_DIR}/cmake/PackagesCheck.cmake)
set(CPACK_MULTICAST_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
find_program(MULTICAST_GZIP gzip)
mark_as_advanced(MULTICAST_GZIP)
set(CPACK_MULTICAST_GZIP ${MULTICAST_GZIP})

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_DEBUGINFO_PACKAGE ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SOURCE libmulticast)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libmulticast${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_RUNTIME_DESCRIPTION
"one-to-many delegation - shared library
A multicast holds any number of delegates, each a C function with a context,
and invokes them all. Invoking takes no lock; a delegate that has been removed
runs on no thread any more; and no handle can crash the library.

This package has the shared library.")

set(multicast_man_pages)
if(MULTICAST_DOCS OR EXISTS ${multicast_archived_man})
  set(multicast_man_pages "man pages, ")
endif()
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libmulticast-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
  "${CPACK_DEBIAN_RUNTIME_PACKAGE_NAME} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
"one-to-many delegation - development files
A multicast holds any number of delegates, each a C function with a context,
and invokes them all. Invoking takes no lock; a delegate that has been removed
runs on no thread any more; and no handle can crash the library.

This package has the headers for C and C++, the static library, ${multicast_man_pages}the
files for CMake and pkg-config, and multicast-trace, which traces programs.")

set(multicast_packages RUNTIME DEVELOPMENT)
# Defines the packages of a transport. NAME is the transport's name in capitals. BETWEEN and CARRIED
# are phrases for the description: BETWEEN says where the observers are, and CARRIED how
# notifications reach them.
macro(multicast_package_transport NAME BETWEEN CARRIED)
  string(TOLOWER ${NAME} multicast_name)
  list(APPEND multicast_packages ${NAME}_RUNTIME ${NAME}_DEVELOPMENT)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR})
  set(CPACK_DEBIAN_${NAME}_RUNTIME_PACKAGE_NAME
    libmulticast-${multicast_name}${PROJECT_VERSION_MAJOR})
  set(CPACK_DEBIAN_${NAME}_RUNTIME_PACKAGE_SECTION libs)
  set(CPACK_DEBIAN_${NAME}_RUNTIME_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_${NAME}_RUNTIME_PACKAGE_GENERATE_SHLIBS ON)
  set(CPACK_DEBIAN_${NAME}_RUNTIME_PACKAGE_DEPENDS
    "${CPACK_DEBIAN_RUNTIME_PACKAGE_NAME} (= ${PROJECT_VERSION})")
  set(CPACK_DEBIAN_${NAME}_RUNTIME_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/debian/triggers)
  set(CPACK_DEBIAN_${NAME}_DEVELOPMENT_PACKAGE_NAME libmulticast-${multicast_name}-dev)
  set(CPACK_DEBIAN_${NAME}_DEVELOPMENT_PACKAGE_SECTION libdevel)
  set(CPACK_DEBIAN_${NAME}_DEVELOPMENT_PACKAGE_DEPENDS
    "${CPACK_DEBIAN_${NAME}_RUNTIME_PACKAGE_NAME} (= ${PROJECT_VERSION}), ${CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME} (= ${PROJECT_VERSION})")
  foreach(multicast_kind RUNTIME DEVELOPMENT)
    set(multicast_what "shared library")
    set(multicast_content "the shared library")
    if(multicast_kind STREQUAL "DEVELOPMENT")
      set(multicast_what "development files")
      set(multicast_content
        "the header, ${multicast_man_pages}and the files for CMake and pkg-config")
    endif()
    set(CPACK_DEBIAN_${NAME}_${multicast_kind}_DESCRIPTION
"one-to-many delegation ${BETWEEN} - ${multicast_what}
A broadcaster of libmulticast notifies observers by name. With this transport
they may be in other processes ${CARRIED}.

This package has ${multicast_content}.")
  endforeach()
endmacro()
if(MULTICAST_LOCAL)
  multicast_package_transport(LOCAL "between processes" "of this machine, without a server")
endif()
if(MULTICAST_MQTT)
  multicast_package_transport(MQTT "over MQTT"
    "and on other machines: an MQTT broker carries\nthe notifications")
endif()
if(MULTICAST_NATS)
  multicast_package_transport(NATS "over NATS"
    "and on other machines: a NATS server carries\nthe notifications")
endif()

# Each package is a group of two components: one with the library's files, and one with the
# additional files that Debian requires.
configure_file(cmake/changelog.in debian/changelog @ONLY)
if(MULTICAST_GZIP)
  execute_process(COMMAND ${MULTICAST_GZIP} -9nf ${PROJECT_BINARY_DIR}/debian/changelog)
endif()
set(CPACK_COMPONENTS_ALL)
foreach(kind IN LISTS multicast_packages)
  string(TOLOWER ${kind} component)
  foreach(name multicast_${component} multicast_debian_${component})
    list(APPEND CPACK_COMPONENTS_ALL ${name})
    string(TOUPPER ${name} upper)
    set(CPACK_COMPONENT_${upper}_GROUP ${component})
  endforeach()
  set(directory ${CMAKE_INSTALL_DATAROOTDIR}/doc/${CPACK_DEBIAN_${kind}_PACKAGE_NAME})
  install(FILES LICENSE RENAME copyright DESTINATION ${directory}
    COMPONENT multicast_debian_${component} EXCLUDE_FROM_ALL)
  install(FILES ${PROJECT_BINARY_DIR}/debian/changelog.gz DESTINATION ${directory}
    COMPONENT multicast_debian_${component} EXCLUDE_FROM_ALL)
endforeach()

include(CPack)
