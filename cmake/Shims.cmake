# Sets multicast_shims_sources and multicast_shims_headers to the C code that is compiled with the
# core, multicast_shims_defines to the macros for this C code and the core, and
# multicast_shims_extensions to whether the C code may use GNU extensions.

set(multicast_default_system posix)
if(CMAKE_SYSTEM_NAME MATCHES "^(Linux|Android)$")
  set(multicast_default_system linux)
endif()
set(MULTICAST_SYSTEM ${multicast_default_system} CACHE STRING
  "The functions of the system: linux; or posix, nothing but POSIX")
set_property(CACHE MULTICAST_SYSTEM PROPERTY STRINGS linux posix)
if(NOT MULTICAST_SYSTEM MATCHES "^(linux|posix)$")
  message(FATAL_ERROR "MULTICAST_SYSTEM is '${MULTICAST_SYSTEM}'; it may be linux or posix")
endif()
set(multicast_shims_defines)
set(multicast_shims_extensions ON)
if(MULTICAST_SYSTEM STREQUAL posix)
  if(multicast_assembly AND NOT APPLE)
    message(FATAL_ERROR
      "The assembly of the core is for MULTICAST_SYSTEM=linux, or for macOS: posix needs swiftc, and that was not "
      "found. Install Swift 6.3 or newer: https://www.swift.org/install/")
  endif()
  set(multicast_shims_defines MULTICAST_SYSTEM_POSIX)
  set(multicast_shims_extensions OFF)
  if(NOT APPLE)  # with this macro, macOS would hide its own functions
    list(APPEND multicast_shims_defines _POSIX_C_SOURCE=200809L)
  endif()
endif()

get_filename_component(multicast_shims_dir ${CMAKE_CURRENT_LIST_DIR}/../Sources/MulticastShims ABSOLUTE)
set(multicast_shims_sources)
set(multicast_shims_headers ${multicast_shims_dir}/include/module.modulemap)
foreach(folder include common ${MULTICAST_SYSTEM})
  file(GLOB sources CONFIGURE_DEPENDS ${multicast_shims_dir}/${folder}/*.c)
  file(GLOB headers CONFIGURE_DEPENDS ${multicast_shims_dir}/${folder}/*.h)
  list(APPEND multicast_shims_sources ${sources})
  list(APPEND multicast_shims_headers ${headers})
endforeach()
