#include "MulticastRuntime.h"

// A closure of Swift: what it captures is an argument of its own, in a register for that.
#ifdef __clang__
#define SWIFT_CALL __attribute__((swiftcall))
#define SWIFT_CONTEXT __attribute__((swift_context))
#else  // for analysis alone: SwiftPM compiles with clang
#define SWIFT_CALL
#define SWIFT_CONTEXT
#endif

typedef struct closure {
  SWIFT_CALL bool (*function)(const void *argument, SWIFT_CONTEXT void *captured);
  void *captured;
} closure;

bool multicast_swift_call(void *closure_in_memory, const void *argument) {
  const closure *c = closure_in_memory;
  return c->function(argument, c->captured);
}

// Never called: the overlay visits its delegates. A call would do nothing.
void multicast_swift_object(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)event, (void)payload, (void)size;
}

void multicast_swift_value(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event, (void)payload, (void)size;
  __asm__("" : : "r"(context));  // so that no linker folds the two into one
}
