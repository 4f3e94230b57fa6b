/* The compiler includes this file before a source that is checked for cl. MinGW's headers need GNU
 * C. After including them, this file undefines the macros of clang and gcc, which cl does not
 * define either. */

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
