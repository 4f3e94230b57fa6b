/* The functions that the library calls. Some of them call the library, with arguments from the
 * input. */

#ifndef CALLEES_H
#define CALLEES_H

#include "multicast.h"

enum { CALLEES = 3 };

extern const multicast_function callee_functions[CALLEES];
void callee_release(void *context);
void *callee_lock(void *context);
void callee_unlock(void *strong);
void callee_wake(void *context);
void callee_listeners_changed(void *context, multicast target, bool wanted);
multicast_status callee_publish(void *context, const char *name, uint32_t event,
                                const void *payload, size_t size);
multicast_status callee_subscribe(void *context, const char *name);
void callee_unsubscribe(void *context, const char *name);
bool callee_visit(void *context, const multicast_delegate *delegate);
bool callee_write(void *context, const char *text, size_t size);
void callee_slow(void *context, multicast_token token, const char *label, uint64_t elapsed_ns);
void callee_listener_warning(void *context, multicast target, uint64_t count, const char *label,
                    multicast_function function, uint64_t most);
void callee_called(void *context, multicast_token token, uint32_t event, uint64_t elapsed_ns);
bool callee_enumerate(void *context, const multicast_registration *registration);

/* May call the library, depending on the input. */
void callee_call_on(void);

#endif
