/* The functions that the library calls: delegates, releases, locks, unlocks and a visitor. Each
 * function first checks that, according to the model, the library had to call it at this point.
 * Then it performs the operations that the input has marked as nested. */

#ifndef CALLBACKS_H
#define CALLBACKS_H

#include "model.h"

extern const multicast_function delegate_functions[FUNCTIONS];
extern void (*const release_functions[RELEASES])(void *);
void *lock_context(void *context);
void unlock_context(void *strong);
void wake_loop(void *context); /* the context is the queue's number + 1 */
const void *copy_payload(const void *payload, size_t size);
void release_payload(const void *payload, size_t size);
bool visit_delegate(void *context, const multicast_delegate *delegate);
bool enumerate_registration(void *context, const multicast_registration *passed);

/* Returns the context with the given number, which must be below CONTEXTS. The last context is
 * NULL. */
void *context_pointer(int context);

multicast_delegate delegate_of(int function, int context);

/* Returns byte `i` of the payload with the given seed. */
unsigned char payload_byte(int seed, size_t i);

#endif
