# libmulticast-mqtt, with -DMULTICAST_MQTT=ON: the transport of broadcasters over MQTT. It is a shared
# library of its own, which uses libmulticast.so and Debian's libmosquitto.

find_path(MULTICAST_MOSQUITTO_INCLUDE mosquitto.h DOC "The folder of mosquitto.h")
find_library(MULTICAST_MOSQUITTO_LIBRARY mosquitto DOC "libmosquitto 2.0 or newer")
mark_as_advanced(MULTICAST_MOSQUITTO_INCLUDE MULTICAST_MOSQUITTO_LIBRARY)
if(NOT MULTICAST_MOSQUITTO_INCLUDE OR NOT MULTICAST_MOSQUITTO_LIBRARY)
  message(FATAL_ERROR "MULTICAST_MQTT needs libmosquitto. Debian: apt-get install libmosquitto-dev")
endif()

file(GLOB multicast_mqtt_sources CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/Sources/MulticastMQTT/*.c)
add_library(multicast_mqtt SHARED ${multicast_mqtt_sources})
add_library(multicast::mqtt ALIAS multicast_mqtt)
set_target_properties(multicast_mqtt PROPERTIES
  EXPORT_NAME mqtt OUTPUT_NAME multicast-mqtt
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  C_STANDARD 11 C_EXTENSIONS ON C_VISIBILITY_PRESET hidden
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/multicast_mqtt.map)
target_include_directories(multicast_mqtt PRIVATE ${MULTICAST_MOSQUITTO_INCLUDE})
target_include_directories(multicast_mqtt INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>)
target_compile_options(multicast_mqtt PRIVATE -Wall -Wextra ${multicast_sanitize_flags})
# Whichever kind the program itself links: the handles are those of the shared library.
target_link_libraries(multicast_mqtt PUBLIC multicast
  PRIVATE ${MULTICAST_MOSQUITTO_LIBRARY} Threads::Threads)
target_link_options(multicast_mqtt PRIVATE
  LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/multicast_mqtt.map
  # Its thread may be the last to use it, and fork() calls it.
  LINKER:-z,nodelete LINKER:-z,now LINKER:-z,defs ${multicast_sanitize_flags})
