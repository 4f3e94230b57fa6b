/* The tests load this plugin, call its code through the library, and unload it. */

#include "plugin.h"

static void be_called(void *context, uint32_t event, const void *payload, size_t size) {
  counts *c = context;
  volatile int steps; /* makes the call take some time */
  for (steps = 0; steps < 200; ++steps) continue;
  __atomic_add_fetch(&c->calls, 1, __ATOMIC_SEQ_CST);
}

static void *lock(void *context) {
  __atomic_add_fetch(&((counts *)context)->locks, 1, __ATOMIC_SEQ_CST);
  return context;
}

static void unlock(void *strong) {
  __atomic_add_fetch(&((counts *)strong)->locks, -1, __ATOMIC_SEQ_CST);
}

static void release(void *context) {
  __atomic_add_fetch(&((counts *)context)->releases, 1, __ATOMIC_SEQ_CST);
}

const plugin plugin_functions = {be_called, lock, unlock, release};
