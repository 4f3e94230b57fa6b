/* Watches that note what they are notified. */

#ifndef WATCHES_H
#define WATCHES_H

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

/* Watch a multicast, or all, or none any more. Expect that to succeed. */
void watch(multicast m, multicast_watch watch);
void watch_all(multicast_watch watch);
void unwatch(multicast m);
void unwatch_all(void);

/* What was counted of a registration. */
multicast_token_stats counted(multicast_token token);
void expect_counted(multicast_token token, uint64_t calls, uint64_t queued, uint64_t dropped);

#endif
