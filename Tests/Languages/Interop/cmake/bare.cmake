# Checks that the library's targets add no flags, definitions or sources to targets that use them.
foreach(target multicast multicast_shared multicast_static)
  foreach(property COMPILE_OPTIONS COMPILE_DEFINITIONS COMPILE_FEATURES LINK_OPTIONS LINK_DIRECTORIES
      LINK_LIBRARIES SOURCES AUTOUIC_OPTIONS)
    get_target_property(value multicast::${target} INTERFACE_${property})
    if(property STREQUAL LINK_LIBRARIES AND target STREQUAL multicast_static)
      string(REPLACE Threads::Threads "" value "${value}")
    endif()
    if(value)
      message(SEND_ERROR "multicast::${target} has INTERFACE_${property} ${value}")
    endif()
  endforeach()
endforeach()
