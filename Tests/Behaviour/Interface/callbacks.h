/* Lists every kind of callback that the library makes, so that tests can run code inside each
 * kind. */

#ifndef CALLBACKS_H
#define CALLBACKS_H

#include "harness.h"

typedef struct callback {
  const char *name;
  /* Uses the library in such a way that it makes this callback, which calls `body`, at least
   * once. */
  void (*run)(void (*body)(void));
} callback;

extern const callback callbacks[];
extern const size_t callback_count;

#endif
