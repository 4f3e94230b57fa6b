// The exception handler of the core's functions: the counterpart of common/unwind.c.
//
// Windows calls this handler when it searches for a function that catches an exception, and again
// when it unwinds the stack. The handler stops only C++ exceptions. It leaves other exceptions,
// such as faults, to debuggers and crash reporters.

#include "../include/shims.h"

#ifdef SHIMS_WINDOWS

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdlib.h>

#define GNU_EXCEPTION 0x20474343u        // of gcc and clang: the throw returns if the search ends
#define MICROSOFT_EXCEPTION 0xE06D7363u  // of cl
#define UNWINDING 0x6u                   // EXCEPTION_UNWINDING | EXCEPTION_EXIT_UNWIND

// The runtime of gcc calls std::terminate() if the search returns. Microsoft's runtime does not
// expect the search to return, so abort() ends the program.
SHIMS_HIDDEN EXCEPTION_DISPOSITION shims_windows_handler(EXCEPTION_RECORD *exception, void *frame,
                                                         CONTEXT *context, void *dispatcher);
EXCEPTION_DISPOSITION shims_windows_handler(EXCEPTION_RECORD *exception, void *frame,
                                            CONTEXT *context, void *dispatcher) {
  (void)frame, (void)context, (void)dispatcher;
  if ((exception->ExceptionFlags & UNWINDING) != 0) return ExceptionContinueSearch;
  if (exception->ExceptionCode == GNU_EXCEPTION) return ExceptionContinueExecution;
  if (exception->ExceptionCode == MICROSOFT_EXCEPTION) abort();
  return ExceptionContinueSearch;
}

#endif
