# Builds the transports of broadcasters: libmulticast-local (between processes, built unless
# MULTICAST_LOCAL is OFF), libmulticast-mqtt (built if MULTICAST_MQTT is ON) and libmulticast-nats
# (built if MULTICAST_NATS is ON). Each is a separate shared library, which uses libmulticast.so
# and, if it needs one, a client library, which Debian provides.

if(APPLE AND (MULTICAST_LOCAL OR MULTICAST_MQTT OR MULTICAST_NATS))
  message(FATAL_ERROR "MULTICAST_LOCAL, MULTICAST_MQTT, MULTICAST_NATS: the transports need Linux.")
endif()

# Undefined symbols are errors, except in a parent project, because it may use a sanitizer. Clang
# defines a sanitizer's functions only in the program.
set(multicast_no_undefined)
if(MULTICAST_BUILD_TESTS)
  set(multicast_no_undefined LINKER:-z,defs)
endif()

# Link-time optimization helps because much of the cost of a message is in calls between small
# files. If a flag selects another linker, that linker may not support this optimization. CMake's
# check would not detect this, because it does not use that linker.
set(multicast_has_ipo OFF)
if((MULTICAST_LOCAL OR MULTICAST_MQTT OR MULTICAST_NATS)
    AND NOT CMAKE_SHARED_LINKER_FLAGS MATCHES "-fuse-ld")
  include(CheckIPOSupported)
  check_ipo_supported(RESULT multicast_has_ipo LANGUAGES C)
endif()

# multicast_find_engine(NAME ENGINE HEADER LIBRARY VERSION PACKAGE)
# ENGINE is the client library with the header HEADER. The cache variables
# MULTICAST_<ENGINE>_INCLUDE and MULTICAST_<ENGINE>_LIBRARY contain its location. PACKAGE is the
# Debian package that contains it.
function(multicast_find_engine NAME ENGINE HEADER LIBRARY VERSION PACKAGE)
  set(include MULTICAST_${ENGINE}_INCLUDE)
  set(library MULTICAST_${ENGINE}_LIBRARY)
  find_path(${include} ${HEADER} DOC "The folder of ${HEADER}")
  find_library(${library} ${LIBRARY} DOC "lib${LIBRARY} ${VERSION} or newer")
  mark_as_advanced(${include} ${library})
  if(NOT ${include} OR NOT ${library})
    message(FATAL_ERROR
      "MULTICAST_${NAME} needs lib${LIBRARY}. Debian: apt-get install ${PACKAGE}")
  endif()
endfunction()

# FOLDER is the folder of the transport in Sources/Transports. ENGINE is a library found by
# multicast_find_engine(), or empty.
function(multicast_add_transport FOLDER ENGINE)
  string(TOLOWER ${FOLDER} name)
  set(target multicast_${name})
  set(map ${PROJECT_SOURCE_DIR}/cmake/${target}.map)
  set(all ${PROJECT_SOURCE_DIR}/Sources/Transports)
  file(GLOB sources CONFIGURE_DEPENDS
    ${all}/${FOLDER}/*.c ${all}/Common/*.c ${all}/Common/Messages/*.c ${all}/Common/Names/*.c
    ${all}/Common/Questions/*.c)
  add_library(${target} SHARED ${sources})
  add_library(multicast::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES
    EXPORT_NAME ${name} OUTPUT_NAME multicast-${name}
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    INTERPROCEDURAL_OPTIMIZATION ${multicast_has_ipo}
    C_STANDARD 11 C_EXTENSIONS ON C_VISIBILITY_PRESET hidden LINK_DEPENDS ${map})
  if(ENGINE)
    target_include_directories(${target} PRIVATE ${MULTICAST_${ENGINE}_INCLUDE})
    target_link_libraries(${target} PRIVATE ${MULTICAST_${ENGINE}_LIBRARY})
  endif()
  target_include_directories(${target} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
  # If the surrounding project sets no build type, C is optimized like the core.
  target_compile_options(${target} PRIVATE
    $<$<CONFIG:>:-O2> -Wall -Wextra ${multicast_sanitize_flags})
  # The transport always uses the shared library, whichever kind the program links, because a
  # transport's handles belong to the shared library.
  target_link_libraries(${target} PUBLIC ${multicast_shared} PRIVATE Threads::Threads)
  target_link_options(${target} PRIVATE LINKER:--version-script=${map}
    # The library must stay mapped, because the transport's thread may be the last to use the
    # library, and fork() calls the library's handlers.
    LINKER:-z,nodelete LINKER:-z,now ${multicast_no_undefined} ${multicast_sanitize_flags})
endfunction()

if(MULTICAST_LOCAL)
  multicast_add_transport(Local "")
  if(NOT PROJECT_IS_TOP_LEVEL AND NOT MULTICAST_INSTALL)
    set_target_properties(multicast_local PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
endif()
if(MULTICAST_MQTT)
  multicast_find_engine(MQTT MOSQUITTO mosquitto.h mosquitto 2.0 libmosquitto-dev)
  multicast_add_transport(MQTT MOSQUITTO)
endif()
if(MULTICAST_NATS)
  multicast_find_engine(NATS LIBNATS nats/nats.h nats 3.4 libnats-dev)
  multicast_add_transport(NATS LIBNATS)
endif()
