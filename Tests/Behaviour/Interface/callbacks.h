/* A list of all kinds of callbacks that the library makes. Tests use it to run code inside each
 * kind of callback. */

#ifndef CALLBACKS_H
#define CALLBACKS_H

#include "harness.h"

typedef struct callback {
  const char *name;
  /* Uses the library so that it makes this callback, which calls `body`, at least once. */
  void (*run)(void (*body)(void));
} callback;

extern const callback callbacks[];
extern const size_t callback_count;

#endif
