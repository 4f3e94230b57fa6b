/* SPDX-License-Identifier: MIT
 *
 * 04_plugin_module: the plugin that 04_plugin loads and unloads. It counts keys.
 *
 * Unloading the plugin unmaps all its functions, including its release functions. When
 * multicast_lifetime_end() returns MULTICAST_OK, the release functions have returned, too.
 */

#include "04_plugin.h"

#include <stdlib.h>

struct counter {
  const struct plugin_host *host;
  uint64_t keys;
};

static void counter_key(void *context, uint32_t event, const void *payload, size_t size) {
  struct counter *counter = context;
  (void)event, (void)payload, (void)size;
  counter->keys += 1;
  if (counter->keys == 100) counter->host->hundred();
}

static void counter_release(void *context) {
  struct counter *counter = context;
  counter->host->counted(counter->keys);
  free(counter);
}

static struct counter *counter_create(const struct plugin_host *host) {
  struct counter *counter = malloc(sizeof *counter);
  if (counter == NULL) return NULL;
  counter->host = host;
  counter->keys = 0;
  return counter;
}

static multicast_status start(const struct plugin_host *host) {
  multicast_delegate delegate = {counter_key, counter_create(host)};
  if (delegate.context == NULL) return MULTICAST_ERROR_OUT_OF_MEMORY;
  multicast_add_options options = multicast_add_options_default();
  options.lifetime = host->lifetime;
  options.release = counter_release; /* The library owns the counter, even if the add fails. */
  return multicast_add(host->keys, delegate, &options, NULL);
}

const struct plugin plugin_interface = {start};
