/* A waker is the context of one queue's wake function. It exists until destroying the queue has
 * returned MULTICAST_OK, or until the end of the round. */

#ifndef WAKER_H
#define WAKER_H

#include <stdint.h>

#include "multicast.h"

typedef struct waker waker;

/* Makes a waker, and sets `wake` and its context in the options. */
waker *waker_make(multicast_queue_options *options);

/* Makes the calls of the waker perform no operations. Must be called before the queue is
 * created. */
void waker_make_quiet(waker *w);

/* Tells the waker which queue was created with it. */
void waker_belongs_to(waker *w, multicast_queue queue);

/* Returns how often the wake function was called. */
int32_t waker_calls(const waker *w);

/* Called when destroying the queue has returned MULTICAST_OK. From now on, a running or new call of
 * its wake function is a failure. */
void queue_is_finished(multicast_queue queue);

/* Called at the end of a round, when no thread is left. */
void wakers_end(void);

/* Sets a function that every wake function calls in addition to its own work. */
void set_wake_body(void (*body)(void));

#endif
