/* The compiler includes this file before a source that is checked for cl. MinGW's headers need GNU
 * C, so this file first includes them, and then undefines the macros of clang and gcc, because cl
 * does not define them. */

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
