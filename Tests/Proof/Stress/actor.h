/* An actor is a thread that uses the library. It generates its own random numbers, and records its
 * current operations for the watchdog. */

#ifndef ACTOR_H
#define ACTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Used to check that a running invocation or visit makes its calls in order of priority. */
typedef struct order {
  uint64_t number; /* the number of the invocation, counted per thread */
  int32_t priority;
} order;

enum { DEEPEST = 6, DOING_LIMIT = 48 };

struct borrowed;

typedef struct actor {
  uint64_t id; /* 0 if unused */
  uint64_t random;
  const char *kind;
  const char *doing[DOING_LIMIT]; /* the current operations, which nest */
  uint64_t progress;
  uint64_t invocations;
  order *order; /* the innermost invocation; NULL if there is none, and inside a run */
  struct borrowed *borrowed;
  uint32_t doing_count;
  int calls;     /* the number of calls that the thread is in */
  int weak_calls;
  int releases;  /* the number of releases, copies and wakes that the thread is in */
  int budget;    /* how many operations its calls may still begin */
  bool has_deferred; /* the library may have deferred an invocation to the end of these calls */
  bool is_plain; /* its calls perform no operations, because it must not block */
} actor;

/* Returns the actor of the calling thread. A thread created by the library becomes an actor when it
 * first calls this function. */
actor *actor_current(void);
void actor_start(uint64_t seed, const char *kind);

/* Sets the seed for threads created by the library. */
void actor_set_seed(uint64_t seed);

/* Returns whether this process is the child of a fork, and therefore has only one thread. */
bool is_in_child(void);

uint64_t random_number(void);
uint32_t random_below(uint32_t limit);
bool one_in(uint32_t times);

/* Begin and end an operation of this thread. Operations inside calls nest. */
void doing(const char *what);
void doing_end(void);

/* Tells the watchdog that the current operation is making progress. */
void doing_more(void);

void actor_print_current(void);
void actors_print(FILE *out);

/* Returns the number of actors of one kind. */
int actor_count(const char *kind);
extern const char of_a_queue[];

/* Returns the index of a thread that has made no progress during `limit` calls to this function, or
 * -1. `known` stores the state between calls. */
enum { ACTOR_LIMIT = 128 };
typedef struct progress {
  uint64_t id[ACTOR_LIMIT];
  uint64_t count[ACTOR_LIMIT];
  int idle_for[ACTOR_LIMIT];
} progress;
int actor_that_hangs(progress *known, int limit);

#endif
