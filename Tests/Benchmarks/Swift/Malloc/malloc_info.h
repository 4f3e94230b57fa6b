// What glibc's module for Swift leaves out: mallinfo2().
#include <malloc.h>
