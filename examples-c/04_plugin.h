/* SPDX-License-Identifier: MIT
 *
 * 04_plugin.h: all that 04_plugin, the host, and its plugins know of each other.
 *
 * Both link with the shared library of multicast, and so with the same one: a handle that the host
 * has made is good in the plugin. (With the static library each would have one of its own.)
 */

#ifndef PLUGIN_04_H
#define PLUGIN_04_H

#include <multicast.h>

/* The events of `keys`: a key was pressed. The payload is its character. */
enum { KEY_PRESSED };

/* The events of `files`: a file was opened, or saved. The payload is its name. */
enum { FILE_OPENED, FILE_SAVED };

/* What the host offers to a plugin, for as long as that is loaded. */
struct plugin_host {
  multicast keys;
  multicast files;
  /* For all that the plugin registers, wherever: the host ends it before it unloads the plugin. */
  multicast_lifetime lifetime;
  /* The plugin's delegates tell of each call of them, on the thread that calls them. */
  void (*called)(void);
  /* For the context of a delegate, which is from malloc(): frees it. On any thread. */
  void (*release)(void *context);
};

/* What a plugin exports, as the constant `plugin_interface`: dlsym() returns a pointer to an
 * object, which C does not let anyone convert to one to a function. */
struct plugin {
  /* Registers the plugin's delegates. Returns how many, or a negative status.
   *
   * There is no function that stops a plugin. It need not remember what it has registered, and
   * cannot forget any of it either: to end the lifetime is all there is to do. */
  int64_t (*start)(const struct plugin_host *host);
};

extern const struct plugin plugin_interface;

#define PLUGIN_SYMBOL "plugin_interface"

#endif
