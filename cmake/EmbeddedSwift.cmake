# Compiles a whole Swift module as Embedded Swift into one object, under any generator: CMake's own
# Swift support knows Ninja and Xcode only, and wants the ordinary runtime.

find_program(MULTICAST_SWIFTC swiftc DOC "The Swift compiler, 6.3 or newer")
if(NOT MULTICAST_SWIFTC)
  message(FATAL_ERROR
    "swiftc was not found. Install Swift 6.3 or newer (https://www.swift.org/install/linux/) and put "
    "it on the PATH, or give -DMULTICAST_SWIFTC=/path/to/swiftc.")
endif()

# multicast_add_embedded_swift_object(OBJECT MODULE name SOURCES ... INCLUDES ... DEPENDS ...
#                                     SANITIZE name)
function(multicast_add_embedded_swift_object object)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "MODULE;SANITIZE" "SOURCES;INCLUDES;DEPENDS")
  list(TRANSFORM arg_INCLUDES PREPEND -I OUTPUT_VARIABLE includes)
  list(TRANSFORM arg_DEPENDS PREPEND ${PROJECT_SOURCE_DIR}/)
  set(sanitize)
  if(arg_SANITIZE)
    set(sanitize -sanitize=${arg_SANITIZE} -g)
  endif()
  # Functions begin on cache lines: where the loop of an invocation falls makes up to half of its speed.
  add_custom_command(
    OUTPUT ${object}
    COMMAND ${MULTICAST_SWIFTC} -c -wmo -parse-as-library -swift-version 6
      -module-name ${arg_MODULE} -enable-experimental-feature Embedded
      -enforce-exclusivity=unchecked -Xfrontend -function-sections -Xllvm -align-all-functions=6
      "$<IF:$<CONFIG:Debug>,-Onone;-g,-O>" "$<$<CONFIG:RelWithDebInfo>:-g>"
      ${sanitize} ${includes} ${arg_SOURCES} -o ${object}
    DEPENDS ${arg_SOURCES} ${arg_DEPENDS}
    COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Compiling Embedded Swift module ${arg_MODULE}")
endfunction()
