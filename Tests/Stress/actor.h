/* A thread that uses the library: what it is doing, for the watchdog; and its random numbers. */

#ifndef ACTOR_H
#define ACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* An invocation or a visit that runs: what is called by it comes in this order. */
typedef struct order {
  uint64_t number; /* rises with each of the thread */
  int32_t priority;
} order;

enum { DEEPEST = 6, DOING_LIMIT = 48 };

struct borrowed;

typedef struct actor {
  uint64_t id; /* 0: nobody */
  uint64_t random;
  const char *kind;
  const char *doing[DOING_LIMIT]; /* operations inside of one another */
  uint64_t progress;
  uint64_t invocations;
  order *order; /* NULL: none, or in the run of a queue inside of it */
  struct borrowed *borrowed;
  uint32_t doing_count;
  int calls;     /* of delegates that it is inside of */
  int weak_calls;
  int releases;  /* that it is inside of */
  int budget;    /* operations that calls may still begin */
  bool is_plain; /* its calls do nothing: it keeps the queues going */
} actor;

/* Of the calling thread; one of the library's own becomes known here. */
actor *actor_current(void);
void actor_start(uint64_t seed, const char *kind);

/* The seed of those that start by themselves. */
void actor_set_seed(uint64_t seed);

uint64_t random_number(void);
uint32_t random_below(uint32_t limit);
bool one_in(uint32_t times);

/* What the thread does from here on; `doing_end` afterwards. Inside of calls they nest. */
void doing(const char *what);
void doing_end(void);

/* It gets on with the same. */
void doing_more(void);

void actor_print_current(void);
void actors_print(FILE *out);

/* How many there are of a kind. */
int actor_count(const char *kind);
extern const char of_a_queue[];

/* The index of a thread that has been in the same operation since `before` was written, for which
 * it is; -1 where there is none. */
enum { ACTOR_LIMIT = 128 };
typedef struct progress {
  uint64_t id[ACTOR_LIMIT];
  uint64_t count[ACTOR_LIMIT];
  int idle_for[ACTOR_LIMIT];
} progress;
int actor_that_hangs(progress *known, int limit);

#endif
