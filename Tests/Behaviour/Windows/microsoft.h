/* Included before a source that is checked like cl would see it. The headers of MinGW need GNU C;
 * afterwards the compiler no longer says that it is clang or gcc. */

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
