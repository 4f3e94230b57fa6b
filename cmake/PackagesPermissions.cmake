# Run by cpack when the files are in place: everybody may enter the directories, whatever the umask, and
# static libraries have no debug information, as Debian has them.

file(GLOB_RECURSE entries LIST_DIRECTORIES true ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(entry IN LISTS entries)
  if(IS_DIRECTORY ${entry})
    file(CHMOD ${entry} PERMISSIONS
      OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  elseif(entry MATCHES "[.]a$")
    execute_process(COMMAND strip --strip-debug ${entry} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
