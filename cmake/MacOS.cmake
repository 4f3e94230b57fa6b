# The rules that are specific to macOS: the target of swiftc, which EmbeddedSwift.cmake uses, and
# the linking of the two libraries.

# ---- The target of swiftc -------------------------------------------------------------------------

list(LENGTH CMAKE_OSX_ARCHITECTURES multicast_architectures)
if(multicast_architectures GREATER 1)
  message(FATAL_ERROR
    "libmulticast is built for one processor at a time, not for '${CMAKE_OSX_ARCHITECTURES}': build "
    "it for each, and join the libraries with lipo.")
endif()
set(multicast_architecture ${CMAKE_OSX_ARCHITECTURES})
if(NOT multicast_architecture)
  set(multicast_architecture ${CMAKE_SYSTEM_PROCESSOR})
endif()
string(REPLACE aarch64 arm64 multicast_architecture "${multicast_architecture}")
# macOS 11 is the first version for arm64. CMake itself sets no version, and without a version the C
# compiler targets the build machine's version.
set(multicast_macos ${CMAKE_OSX_DEPLOYMENT_TARGET})
if(NOT multicast_macos)
  set(multicast_macos 11.0)
endif()
if(NOT multicast_swift_target)
  set(multicast_swift_target ${multicast_architecture}-apple-macosx${multicast_macos})
endif()
# swiftc accepts atomics only for macOS 15 and later, whose system library contains their ordinary
# implementation. Embedded Swift inlines atomics and needs no library.
set(multicast_macos_swift_flags -Xfrontend -disable-availability-checking)
if(CMAKE_OSX_SYSROOT)
  list(APPEND multicast_macos_swift_flags -sdk ${CMAKE_OSX_SYSROOT})
endif()

# ---- Linking --------------------------------------------------------------------------------------

# multicast_link_on_macos(SHARED STATIC_OBJECT SWIFT_OBJECT): sets the options of the shared
# library, and adds the rule for the object of the static library.
function(multicast_link_on_macos shared static_object swift_object)
  set(exports ${PROJECT_SOURCE_DIR}/cmake/multicast.exports)
  target_link_options(${shared} PRIVATE
    LINKER:-exported_symbols_list,${exports} LINKER:-dead_strip ${multicast_sanitize_flags})
  set_target_properties(${shared} PROPERTIES LINK_DEPENDS ${exports})
  set(architecture)
  if(CMAKE_OSX_ARCHITECTURES)
    set(architecture -arch ${CMAKE_OSX_ARCHITECTURES})
  endif()
  # Makes one object in which only the interface is global. The linker makes hidden symbols local.
  add_custom_command(
    OUTPUT ${static_object}
    COMMAND ${CMAKE_C_COMPILER} ${CMAKE_C_COMPILER_ARG1} ${architecture} -r -nostdlib
      -Wl,-exported_symbols_list,${exports} -o ${static_object}
      ${swift_object} $<TARGET_OBJECTS:multicast_shims>
    DEPENDS ${swift_object} multicast_shims $<TARGET_OBJECTS:multicast_shims> ${exports}
    COMMAND_EXPAND_LISTS VERBATIM
    COMMENT "Linking one object for the static library")
endfunction()
