# Uses Debian's gcc for musl, from the package musl-tools. The kernel headers are in glibc's
# directories. gcc searches these directories last, so that it finds musl's libc headers.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR x86_64)
set(CMAKE_C_COMPILER musl-gcc)
set(CMAKE_C_FLAGS_INIT "-idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu")
