/* A waker is the context of one queue's wake function. It exists until a call that destroys the
 * queue has returned MULTICAST_OK, or until the end of the round. */

#ifndef WAKER_H
#define WAKER_H

#include <stdint.h>

#include "multicast.h"

typedef struct waker waker;

/* Makes a waker, and sets the `wake` function and its context in the options. */
waker *waker_make(multicast_queue_options *options);

/* Makes the waker's calls perform no operations. Must be called before the queue is created. */
void waker_make_quiet(waker *w);

/* Tells the waker which queue was created with it. */
void waker_belongs_to(waker *w, multicast_queue queue);

/* Returns how many times the wake function has been called. */
int32_t waker_calls(const waker *w);

/* Called when the function that destroys the queue has returned MULTICAST_OK. From then on, a
 * running or new call to the wake function is a failure. */
void queue_is_finished(multicast_queue queue);

/* Called at the end of a round, when no threads are left. */
void wakers_end(void);

/* Sets a function that every wake function calls in addition to its own work. */
void set_wake_body(void (*body)(void));

#endif
