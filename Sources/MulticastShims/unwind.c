// What happens at the library's functions when a stack is unwound.
//
// The library has tables for it: so debuggers, profilers and backtrace() see who called it. C++
// uses the same tables to find who catches an exception. No exception may pass through the library,
// which would be left in the middle of a call. So each function of the core has a personality, as
// the C++ ABI calls it, which says that the search ends here. The exception is then one that nobody
// catches: C++ calls std::terminate().

#include "shims.h"

// From the Itanium C++ ABI. The header that declares them is not with every C compiler.
enum { UNWIND_FATAL = 3, UNWIND_CONTINUE = 8 };  // _URC_FATAL_PHASE1_ERROR, _URC_CONTINUE_UNWIND
enum { UNWIND_SEARCHES = 1 };                    // _UA_SEARCH_PHASE

// Only an exception is searched for. A thread that ends, by pthread_exit() or by cancellation,
// unwinds its stack without a search: it passes, and its thread-specific data end the calls.
int shims_personality(int version, int actions, uint64_t language, void *exception, void *context) {
  (void)version, (void)language, (void)exception, (void)context;
  return (actions & UNWIND_SEARCHES) != 0 ? UNWIND_FATAL : UNWIND_CONTINUE;
}
