# libmulticast-nats, with -DMULTICAST_NATS=ON: the transport of broadcasters over NATS. It is a
# shared library of its own, which uses libmulticast.so and Debian's libnats.

find_path(MULTICAST_LIBNATS_INCLUDE nats/nats.h DOC "The folder of nats/nats.h")
find_library(MULTICAST_LIBNATS_LIBRARY nats DOC "libnats 3.4 or newer")
mark_as_advanced(MULTICAST_LIBNATS_INCLUDE MULTICAST_LIBNATS_LIBRARY)
if(NOT MULTICAST_LIBNATS_INCLUDE OR NOT MULTICAST_LIBNATS_LIBRARY)
  message(FATAL_ERROR "MULTICAST_NATS needs libnats. Debian: apt-get install libnats-dev")
endif()

file(GLOB multicast_nats_sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/Sources/MulticastNATS/*.c)
add_library(multicast_nats SHARED ${multicast_nats_sources})
add_library(multicast::nats ALIAS multicast_nats)
set_target_properties(multicast_nats PROPERTIES
  EXPORT_NAME nats OUTPUT_NAME multicast-nats
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  C_STANDARD 11 C_EXTENSIONS ON C_VISIBILITY_PRESET hidden
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/multicast_nats.map)
target_include_directories(multicast_nats PRIVATE ${MULTICAST_LIBNATS_INCLUDE})
target_include_directories(multicast_nats INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_compile_options(multicast_nats PRIVATE -Wall -Wextra ${multicast_sanitize_flags})
# Whichever kind the program itself links: the handles are those of the shared library.
target_link_libraries(multicast_nats PUBLIC multicast
  PRIVATE ${MULTICAST_LIBNATS_LIBRARY} Threads::Threads)
target_link_options(multicast_nats PRIVATE
  LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/multicast_nats.map
  # Its thread may be the last to use it, and fork() calls it.
  LINKER:-z,nodelete LINKER:-z,now LINKER:-z,defs ${multicast_sanitize_flags})
