// The functions of <string.h> that shims.h calls. Only swiftc includes this file. It compiles the
// core without the headers of a C library, because no target of swiftc has the same types as MinGW.

#ifndef MULTICAST_WINDOWS_STRING_H
#define MULTICAST_WINDOWS_STRING_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t size);
void *memset(void *block, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
size_t strnlen(const char *text, size_t limit);

#endif
