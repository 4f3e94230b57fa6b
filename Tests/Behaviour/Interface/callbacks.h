/* Lists every kind of callback that the library makes, so that tests can run code inside each
 * kind. */

#ifndef CALLBACKS_H
#define CALLBACKS_H

#include "harness.h"

typedef struct callback {
  const char *name;
  /* Makes the library call this callback at least once, and makes the callback call `body`. */
  void (*run)(void (*body)(void));
} callback;

extern const callback callbacks[];
extern const size_t callback_count;

#endif
