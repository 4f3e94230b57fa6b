/* From every callback, the stack can be unwound through the library to `main`. Debuggers,
 * profilers, sanitizers and backtrace() use the same unwind tables. */

#include "callbacks.h"

#ifdef __GLIBC__ /* Debian has no unwinder for C programs with musl */
#include <unwind.h>

int main(int count, char **arguments);

static int complete, incomplete;

typedef struct seen {
  bool has_caller, has_main;
} seen;

static void make_call(const callback *c);

static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *frame, void *result) {
  seen *s = result;
#ifdef __arm__ /* the pointer to a function in Thumb code is odd */
  const uintptr_t function =
      (uintptr_t)_Unwind_GetRegionStart(frame) | ((uintptr_t)make_call & 1);
#else
  const uintptr_t call = (uintptr_t)_Unwind_GetIP(frame) - 1;
  const uintptr_t function = (uintptr_t)_Unwind_FindEnclosingFunction((void *)call);
#endif
  if (function == (uintptr_t)make_call) s->has_caller = true;
  if (function == (uintptr_t)main && s->has_caller) s->has_main = true;
  return _URC_NO_REASON;
}

static void look(void) {
  seen s = {false, false};
  (void)_Unwind_Backtrace(look_at_frame, &s);
  if (s.has_main) {
    ++complete;
  } else {
    ++incomplete;
  }
}

/* This function must have a stack frame, so it must not be inlined or end in a tail call. */
__attribute__((noinline)) static void make_call(const callback *c) {
  c->run(look);
  __asm__ __volatile__("" ::: "memory");
}

TEST(stacks_lead_through_the_library_to_main) {
  for (size_t i = 0; i < callback_count; ++i) {
    complete = incomplete = 0;
    make_call(&callbacks[i]);
    if (complete == 0 || incomplete > 0)
      check_failed(__FILE__, __LINE__, callbacks[i].name, "has no whole stack");
  }
}
#endif
