/* Every kind of callback that the library makes, for tests of what happens inside. */

#ifndef CALLBACKS_H
#define CALLBACKS_H

#include "harness.h"

typedef struct callback {
  const char *name;
  /* Makes the library call `body`, once or more. */
  void (*run)(void (*body)(void));
} callback;

extern const callback callbacks[];
extern const size_t callback_count;

#endif
