/* SPDX-License-Identifier: MIT
 *
 * 04_plugin.h: the interface between the host, 04_plugin, and its plugins.
 *
 * The host and the plugins link the shared library, so they use the same copy of it, and a handle
 * that the host has created is valid in a plugin. With the static library, each of them would have
 * its own copy.
 */

#ifndef PLUGIN_04_H
#define PLUGIN_04_H

#include <multicast.h>

/* The services that the host offers to a plugin while the plugin is loaded. */
struct plugin_host {
  /* Invoked when a key has been pressed. The payload is the key's character. */
  multicast keys;
  /* The lifetime of all the plugin's delegates. The host ends it before it unloads the plugin. */
  multicast_lifetime lifetime;
  /* The plugin calls this when a hundred keys have reached it. */
  void (*hundred)(void);
  /* The plugin calls this when its delegate is released, with the number of keys that have reached
   * the plugin. */
  void (*counted)(uint64_t keys);
};

/* A plugin exports this as the constant `plugin_interface`. It does not export a function, because
 * C does not allow converting the object pointer that dlsym() returns to a function pointer. There
 * is no `stop` function, because ending the lifetime removes all of the plugin's delegates. */
struct plugin {
  multicast_status (*start)(const struct plugin_host *host);
};

extern const struct plugin plugin_interface;

#define PLUGIN_SYMBOL "plugin_interface"

#endif
