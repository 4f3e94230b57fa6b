/* Every function of the header, each ready to be called once more: for the tests that have the same
 * misfortune happen to all of them. */

#ifndef FUNCTIONS_H
#define FUNCTIONS_H

#include "world.h"

/* What becomes of a call whose memory is refused. */
typedef enum memory_use {
  TAKES_NONE, /* it asks for none */
  FAILS,      /* it comes to MULTICAST_ERROR_OUT_OF_MEMORY, and has changed nothing */
  MAY_COPE    /* that; or it does all the same what it does, or less of it, and says how much */
} memory_use;

typedef struct function {
  const char *name;
  const char *variant;
  memory_use memory;
  int rounds; /* calls until it has taken all the kinds of memory that it takes */
  bool is_first; /* tried before there is anything else; the world is empty then */
  /* Calls it, once, and checks what came of it. 0, or MULTICAST_ERROR_OUT_OF_MEMORY. */
  int64_t (*call)(world *w);
  void (*unmake)(uint64_t handle); /* of those that create */
} function;

extern const function functions[];
extern const int function_count;

/* Destroys what it has created. */
void unmake_all(world *w, const function *f);

/* Calls every function in a world of its own. */
void use_every_function(void);

#endif
