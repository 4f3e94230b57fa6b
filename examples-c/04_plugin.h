/* SPDX-License-Identifier: MIT
 *
 * 04_plugin.h: the interface between the host, 04_plugin, and its plugins.
 *
 * Both link the shared library, so they use the same copy of it, and a handle that the host has
 * created is valid in the plugin. (With the static library each would have its own copy.)
 */

#ifndef PLUGIN_04_H
#define PLUGIN_04_H

#include <multicast.h>

/* The events of `keys`: a key was pressed. The payload is its character. */
enum { KEY_PRESSED };

/* The events of `files`: a file was opened, or saved. The payload is its name. */
enum { FILE_OPENED, FILE_SAVED };

/* What the host offers to a plugin while it is loaded. */
struct plugin_host {
  multicast keys;
  multicast files;
  /* For all registrations of the plugin. The host ends it before it unloads the plugin. */
  multicast_lifetime lifetime;
  /* Each delegate of the plugin calls this in each call, on the same thread. */
  void (*called)(void);
  /* Frees the context of a delegate, which must be from malloc(). On any thread. */
  void (*release)(void *context);
};

/* A plugin exports this as the constant `plugin_interface`: an object, because C does not allow the
 * object pointer that dlsym() returns to be converted to a function pointer. */
struct plugin {
  /* Adds the plugin's delegates. Returns how many, or a negative status.
   *
   * There is no function that stops a plugin: ending the lifetime removes all its registrations, so
   * the plugin does not have to remember them. */
  int64_t (*start)(const struct plugin_host *host);
};

extern const struct plugin plugin_interface;

#define PLUGIN_SYMBOL "plugin_interface"

#endif
