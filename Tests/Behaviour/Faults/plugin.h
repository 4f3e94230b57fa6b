/* The functions that the plugin exports. */

#ifndef PLUGIN_H
#define PLUGIN_H

#include "multicast.h"

typedef struct counts {
  int calls, locks, releases;
} counts;

typedef struct plugin {
  multicast_function be_called;
  void *(*lock)(void *);
  void (*unlock)(void *);
  void (*release)(void *);
} plugin;

extern MULTICAST_API const plugin plugin_functions;

#endif
