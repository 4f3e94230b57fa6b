# cpack runs this when the files are in place. It makes the directories accessible to everyone,
# whatever the umask, and removes debug information from static libraries, as Debian does.

file(GLOB_RECURSE entries LIST_DIRECTORIES true ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(entry IN LISTS entries)
  if(IS_DIRECTORY ${entry})
    file(CHMOD ${entry} PERMISSIONS
      OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  elseif(entry MATCHES "[.]a$")
    execute_process(COMMAND strip --strip-debug ${entry} COMMAND_ERROR_IS_FATAL ANY)
  endif()
endforeach()
