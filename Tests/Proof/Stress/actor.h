/* A thread that uses the library: its current operations, for the watchdog, and its random
 * numbers. */

#ifndef ACTOR_H
#define ACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The order of a running invocation or visit, which makes its calls in order of priority. */
typedef struct order {
  uint64_t number; /* of the invocation, counted per thread */
  int32_t priority;
} order;

enum { DEEPEST = 6, DOING_LIMIT = 48 };

struct borrowed;

typedef struct actor {
  uint64_t id; /* 0 if unused */
  uint64_t random;
  const char *kind;
  const char *doing[DOING_LIMIT]; /* nested operations */
  uint64_t progress;
  uint64_t invocations;
  order *order; /* of the innermost invocation; NULL if none, or inside a run */
  struct borrowed *borrowed;
  uint32_t doing_count;
  int calls;     /* calls that the thread is in */
  int weak_calls;
  int releases;  /* releases, copies and wakes that the thread is in */
  int budget;    /* how many operations its calls may still begin */
  bool has_deferred; /* an invocation inside these calls may be deferred to their end */
  bool is_plain; /* its calls perform no operations, because the thread must not block */
} actor;

/* The actor of the calling thread. A thread of the library becomes an actor when it first calls
 * this. */
actor *actor_current(void);
void actor_start(uint64_t seed, const char *kind);

/* The seed for threads of the library. */
void actor_set_seed(uint64_t seed);

/* Whether this process is the child of a fork, where only one of the threads exists. */
bool is_in_child(void);

uint64_t random_number(void);
uint32_t random_below(uint32_t limit);
bool one_in(uint32_t times);

/* Begins and ends an operation of this thread. Operations inside calls nest. */
void doing(const char *what);
void doing_end(void);

/* Tells the watchdog that the current operation makes progress. */
void doing_more(void);

void actor_print_current(void);
void actors_print(FILE *out);

/* The number of actors of a kind. */
int actor_count(const char *kind);
extern const char of_a_queue[];

/* Returns the index of a thread that has made no progress during `limit` calls of this function, or
 * -1. `known` stores the state between calls. */
enum { ACTOR_LIMIT = 128 };
typedef struct progress {
  uint64_t id[ACTOR_LIMIT];
  uint64_t count[ACTOR_LIMIT];
  int idle_for[ACTOR_LIMIT];
} progress;
int actor_that_hangs(progress *known, int limit);

#endif
