// The functions of <string.h> that shims.h calls, for swiftc: it compiles the core without the
// headers of a C library, because it has no target whose types agree with those of MinGW.

#ifndef MULTICAST_WINDOWS_STRING_H
#define MULTICAST_WINDOWS_STRING_H

#include <stddef.h>

void *memcpy(void *to, const void *from, size_t size);
void *memset(void *block, int byte, size_t size);
int memcmp(const void *a, const void *b, size_t size);
size_t strnlen(const char *text, size_t limit);

#endif
