/* The wake functions of queues. Each has a context of its own, which ends when a destroy of the
 * queue has returned MULTICAST_OK, and otherwise at the end of the round. */

#ifndef WAKER_H
#define WAKER_H

#include <stdint.h>

#include "multicast.h"

typedef struct waker waker;

/* Sets `wake` and its context. */
waker *waker_make(multicast_queue_options *options);

/* Its calls do nothing else. Before the queue is created. */
void waker_make_quiet(waker *w);

/* The queue that was created with it. */
void waker_belongs_to(waker *w, multicast_queue queue);

/* How often it was called. */
int32_t waker_calls(const waker *w);

/* A destroy of the queue has returned MULTICAST_OK: no call of its wake function runs, and none
 * will begin. */
void queue_is_finished(multicast_queue queue);

/* At the end of a round: no thread is left. */
void wakers_end(void);

/* What each wake does besides. */
void set_wake_body(void (*body)(void));

#endif
