/* A table of all the header's functions. Each entry makes a call and checks its result. For each
 * kind of failure, a test calls every function in the table.
 *
 * functions.c contains the calls that need additional objects, or that check more than the status.
 * For all other functions, calls.py generates calls from their parameters. */

#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include "world.h"

/* The result of a call when an allocation fails. */
typedef enum memory_use {
  TAKES_NONE, /* the call never allocates */
  FAILS,      /* returns MULTICAST_ERROR_OUT_OF_MEMORY and changes nothing */
  MAY_COPE    /* either fails like that, or succeeds at least in part, as the result says */
} memory_use;

typedef struct function {
  const char *name;
  const char *variant;
  memory_use memory;
  int rounds; /* the number of calls after which every kind of allocation has been made */
  bool is_first; /* whether the function is called before all others, in an empty world */
  /* Makes one call and checks the result. Returns 0 or MULTICAST_ERROR_OUT_OF_MEMORY. */
  int64_t (*call)(world *w);
} function;

extern function functions[];
extern int function_count;

void function_register(const function *f);

/* CALL(function, variant, memory, rounds) { the body of `call` } */
#define CALL(...) CALL_AT(__LINE__, false, __VA_ARGS__)
#define CALL_FIRST(...) CALL_AT(__LINE__, true, __VA_ARGS__)
#define CALL_AT(...) CALL_AS(__VA_ARGS__)
#define CALL_AS(LINE, IS_FIRST, NAME, VARIANT, MEMORY, ROUNDS)                                   \
  static int64_t call_##LINE(world *w);                                                         \
  __attribute__((constructor)) static void register_##LINE(void) {                              \
    function_register(&(const function){#NAME, VARIANT, MEMORY, ROUNDS, IS_FIRST, call_##LINE}); \
  }                                                                                             \
  static int64_t call_##LINE(__attribute__((unused)) world *w)

/* Destroys the objects that have been passed to keep(). */
void unmake_all(world *w);

/* Creates a world and calls every function with it. */
void use_every_function(void);
void *use_every_function_there(void *unused); /* the body of a thread */

/* ---- Helpers for the calls ------------------------------------------------------------------- */

/* Stores a new object for unmake_all() to destroy. Returns multicast_create_error() if the handle
 * is 0. */
int64_t keep(world *w, uint64_t handle);

/* Each of these functions creates an object with one registration, whose `release` runs when the
 * object ends. */
multicast multicast_to_end(world *w);
multicast_lifetime lifetime_to_end(world *w);
multicast_queue queue_to_end(world *w);
multicast_broadcaster broadcaster_to_end(world *w);

/* removal_begin() adds a delegate for the test to remove. removal_end() expects that the delegate
 * has been removed and that its `release` has run once. */
typedef struct removal {
  int releases;
  int64_t count;
  multicast_token token;
} removal;
removal removal_begin(world *w);
int64_t removal_end(world *w, const removal *r);

bool count_visit(void *context, const multicast_delegate *delegate);
bool count_registration(void *context, const multicast_registration *registration);
bool count_line(void *context, const char *line, size_t size);

/* These functions return options in which every field is set. */
const multicast_create_options *create_options_of(world *w);
const multicast_broadcaster_options *broadcaster_options_of(world *w);

#endif
