/* SPDX-License-Identifier: MIT
 *
 * 16_shared_context: frees an object after its last delegate has been removed.
 *
 * A plug-in is one object that listens to two multicasts. `release` runs once for each
 * registration, when that registration no longer uses the object. It must not free the object,
 * because the other delegate may be using it at that moment. The object therefore counts
 * references: one for each registration, and one for the program. `release` drops one of them.
 *
 * If an add fails, `release` runs as well, so the program increments the reference count before the
 * add.
 *
 * A program that can wait for the end of the lifetime needs no `release`: after MULTICAST_OK, no
 * delegate of the object runs, and the program may free the object.
 *
 * Prints the text in expected/16_shared_context.txt.
 */

#include <multicast.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct plugin {
  atomic_int references;
  multicast saved;
  multicast_delegate on_save;
};

static void fail(const char *what, multicast_status status) {
  fprintf(stderr, "16_shared_context: %s: %s\n", what, multicast_status_message(status));
  exit(EXIT_FAILURE);
}

/* The `release` function of each registration. The program also calls it for its own reference. */
static void drop(void *context) {
  struct plugin *plugin = context;
  int left = atomic_fetch_sub(&plugin->references, 1) - 1;
  printf("a reference is dropped, %d left\n", left);
  if (left == 0) free(plugin);
}

static void on_save(void *context, uint32_t event, const void *payload, size_t size) {
  (void)context, (void)event, (void)payload, (void)size;
  puts("saved");
}

/* Removes the other delegate of the same object, and still uses the object. */
static void on_close(void *context, uint32_t event, const void *payload, size_t size) {
  struct plugin *plugin = context;
  (void)event, (void)payload, (void)size;
  multicast_status status = multicast_remove_every(plugin->saved, plugin->on_save);
  printf("closed: %s, %d references\n", multicast_status_name(status),
         atomic_load(&plugin->references));
}

static void add(multicast target, multicast_delegate delegate, multicast_lifetime lifetime) {
  struct plugin *plugin = delegate.context;
  multicast_add_options how = multicast_add_options_default();
  how.lifetime = lifetime;
  how.release = drop;
  atomic_fetch_add(&plugin->references, 1);
  multicast_status status = multicast_add(target, delegate, &how, NULL);
  if (status != MULTICAST_OK) fail("add", status);
}

int main(void) {
  multicast saved = multicast_create(), closed = multicast_create();
  multicast_lifetime of_plugin = multicast_lifetime_create();
  struct plugin *plugin = malloc(sizeof *plugin);
  if (saved.id == 0 || closed.id == 0 || of_plugin.id == 0 || plugin == NULL)
    fail("create", MULTICAST_ERROR_OUT_OF_MEMORY);
  atomic_init(&plugin->references, 1);
  plugin->saved = saved;
  plugin->on_save = (multicast_delegate){on_save, plugin};
  add(saved, plugin->on_save, of_plugin);
  add(closed, (multicast_delegate){on_close, plugin}, of_plugin);
  drop(plugin); /* From now on only the registrations have references. */

  multicast_invoke(saved, 0, NULL, 0);
  multicast_invoke(closed, 0, NULL, 0);
  multicast_status status = multicast_lifetime_end(of_plugin);
  printf("ended: %s\n", multicast_status_name(status));
  if (multicast_destroy(closed) != MULTICAST_OK || multicast_destroy(saved) != MULTICAST_OK)
    fail("destroy", MULTICAST_ERROR_STATE);
  return EXIT_SUCCESS;
}
