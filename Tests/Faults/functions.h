/* A table of all functions of the header, each with a call that checks its result: for tests that
 * make every function fail in the same way. */

#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include "world.h"

/* What a call does if an allocation fails. */
typedef enum memory_use {
  TAKES_NONE, /* it never allocates */
  FAILS,      /* returns MULTICAST_ERROR_OUT_OF_MEMORY, and changes nothing */
  MAY_COPE    /* that, or succeeds, perhaps in part: its result says how far */
} memory_use;

typedef struct function {
  const char *name;
  const char *variant;
  memory_use memory;
  int rounds; /* calls until it has made each kind of allocation */
  bool is_first; /* is called first of all; the world is empty then */
  /* Calls it once and checks the result. Returns 0 or MULTICAST_ERROR_OUT_OF_MEMORY. */
  int64_t (*call)(world *w);
  void (*unmake)(uint64_t handle); /* destroys what it creates */
} function;

extern const function functions[];
extern const int function_count;

/* Destroys all that calls of it have created. */
void unmake_all(world *w, const function *f);

/* Calls every function in a world of its own. */
void use_every_function(void);

#endif
