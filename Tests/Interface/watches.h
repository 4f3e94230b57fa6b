/* Watches that note what they are notified. */

#ifndef WATCHES_H
#define WATCHES_H

#include "harness.h"
#include "payloads.h"
#include "removals.h"

/* What a watch was notified. It is the context of its functions. */
typedef struct witness {
  int calls, slow, stuck;
  multicast_token token;  /* of the last one that was told */
  uint32_t event;
  uint64_t elapsed_ns;
  char label[64];  /* of the last slow call or stuck wait; "-": none */
  pthread_t thread;
  void (*in_function)(struct witness *);
  multicast target;
} witness;

multicast_watch watching(witness *w);      /* all functions; slow from a nanosecond on */
multicast_watch counting_calls(witness *w); /* `called` only */

/* Watches a multicast; zero: all. Expects that to succeed. */
void watch(multicast m, const multicast_watch *watch);
void watch_all(const multicast_watch *watch);
void unwatch(multicast m);

/* What was counted of a registration. */
multicast_token_stats counted(multicast_token token);
void expect_counted(multicast_token token, uint64_t calls, uint64_t queued, uint64_t dropped);

#endif
