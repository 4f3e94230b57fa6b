# The package for Python, with the library in it:
#
#   cmake --build build --target wheel && pip install build/multicast-*.whl
#
# The target is there in any case; without Python it fails and says so. A build for another processor
# makes the wheel for that one.

find_program(MULTICAST_PYTHON NAMES python3 NO_CMAKE_FIND_ROOT_PATH)
mark_as_advanced(MULTICAST_PYTHON)
if(MULTICAST_PYTHON)
  # The oldest glibc that the library runs with: OldGlibc.cmake.
  set(multicast_wheel_platform linux_${CMAKE_SYSTEM_PROCESSOR})
  if(multicast_old_glibc AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
    set(multicast_wheel_platform manylinux_2_17_${CMAKE_SYSTEM_PROCESSOR})
  endif()
  set(multicast_wheel_library ${PROJECT_BINARY_DIR}/wheel/libmulticast.so.1)
  add_custom_target(wheel
    COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/wheel
    COMMAND ${CMAKE_OBJCOPY} --strip-all $<TARGET_FILE:multicast> ${multicast_wheel_library}
    COMMAND ${MULTICAST_PYTHON} -B ${PROJECT_SOURCE_DIR}/Sources/Python/wheel.py
      --version ${PROJECT_VERSION} --platform ${multicast_wheel_platform}
      --library ${multicast_wheel_library} --output ${PROJECT_BINARY_DIR}
    DEPENDS multicast
    VERBATIM
    COMMENT "Making the wheel for Python")
else()
  file(TOUCH ${PROJECT_BINARY_DIR}/without-python)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
    ${PROJECT_BINARY_DIR}/without-python)
  add_custom_target(wheel
    COMMAND ${CMAKE_COMMAND} -E echo "python3 was not found: the wheel needs it. Install Python."
    # The next build looks for it again.
    COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/without-python
    COMMAND ${CMAKE_COMMAND} -E false
    VERBATIM)
endif()
