/* The compiler includes this file before a source that is checked for cl. The headers of MinGW need
 * GNU C. Behind them, the macros of clang and gcc are undefined, as they are for cl. */

#include <errno.h>
#include <intrin.h>
#include <limits.h>
#include <malloc.h>
#include <process.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#undef _ReadWriteBarrier /* MinGW's is a macro with GNU's assembler */
void _ReadWriteBarrier(void);

#undef __clang__
#undef __GNUC__
