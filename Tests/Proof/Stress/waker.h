/* The wake functions of queues. Each has its own context, which ends when a destroy of the queue
 * has returned MULTICAST_OK, and otherwise at the end of the round. */

#ifndef WAKER_H
#define WAKER_H

#include <stdint.h>

#include "multicast.h"

typedef struct waker waker;

/* Sets `wake` and its context. */
waker *waker_make(multicast_queue_options *options);

/* Makes its calls perform no operations. Called before the queue is created. */
void waker_make_quiet(waker *w);

/* Sets the queue that was created with the waker. */
void waker_belongs_to(waker *w, multicast_queue queue);

/* How often the wake function was called. */
int32_t waker_calls(const waker *w);

/* Called when a destroy of the queue has returned MULTICAST_OK: no call of its wake function may be
 * running or begin later. */
void queue_is_finished(multicast_queue queue);

/* Called at the end of a round, when no thread is left. */
void wakers_end(void);

/* Sets a function that each wake also calls. */
void set_wake_body(void (*body)(void));

#endif
