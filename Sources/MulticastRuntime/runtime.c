#include "MulticastRuntime.h"

// Never called: the overlay visits its delegates. A call would do nothing.
void multicast_swift_object(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)event, (void)payload, (void)size;
}

void multicast_swift_value(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event, (void)payload, (void)size;
  __asm__("" : : "r"(context));  // so that no linker folds the two into one
}
