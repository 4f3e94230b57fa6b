/* Provides watches that record their notifications. */

#ifndef WATCHES_H
#define WATCHES_H

#include "payloads.h"
#include "removals.h"

/* The context of a watch's functions, in which they store the notifications that they receive. */
typedef struct witness {
  int calls, slow, stuck;
  multicast_token token;  /* from the last notification */
  uint32_t event;
  uint64_t elapsed_ns;
  char label[64];  /* from the last slow call or stuck wait; "-": none */
  pthread_t thread;
  void (*in_function)(struct witness *);
  multicast target;
} witness;

/* Returns a watch in which all functions are set. The watch regards every call that takes at least
 * a nanosecond as slow. */
multicast_watch watching(witness *w);
multicast_watch counting_calls(witness *w); /* sets only `called` */

/* These functions set or remove the watch of a multicast or of all multicasts, and expect
 * success. */
void watch(multicast m, multicast_watch watch);
void watch_all(multicast_watch watch);
void unwatch(multicast m);
void unwatch_all(void);

/* counted() returns the counts of a registration, and expect_counted() expects the given counts. */
multicast_token_stats counted(multicast_token token);
void expect_counted(multicast_token token, uint64_t calls, uint64_t queued, uint64_t dropped);

#endif
