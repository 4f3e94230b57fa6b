/* SPDX-License-Identifier: MIT
 *
 * 04_plugin_module: the plugin that 04_plugin loads and unloads.
 *
 * Adds five delegates to two multicasts of the host. Their code, the constants that they read and
 * the variables that they write are all in this module: after it is unmapped, a call of any of them
 * would crash.
 *
 * Release functions are code too. When multicast_lifetime_end() returns MULTICAST_OK, all of them
 * have returned, also those of registrations that were removed before, such as one with
 * MULTICAST_ONCE. So they may be in the plugin, as notepad_release() is.
 */

#include "04_plugin.h"

#include <stdlib.h>

/* Set before the first add, so every call of a delegate sees it. */
static const struct plugin_host *host;

/* The number of calls since this module was loaded. Written by the thread that invokes. */
static uint64_t calls;

/* After so many saves the plugin ends its lifetime itself. */
enum { MOST_SAVES = 2 };
static int saves;

static void called(void) {
  calls += 1;
  host->called();
}

/* ---- A notepad: a context that owns memory -------------------------------------------------- */

enum { NOTEPAD_SIZE = 32 };

struct notepad {
  char *text; /* A ring with the latest characters. */
  size_t written;
};

static void notepad_write(struct notepad *notepad, char character) {
  notepad->text[notepad->written % NOTEPAD_SIZE] = character;
  notepad->written += 1;
}

static struct notepad *notepad_open(void) {
  struct notepad *notepad = malloc(sizeof *notepad);
  if (notepad == NULL) return NULL;
  notepad->written = 0;
  notepad->text = malloc(NOTEPAD_SIZE);
  if (notepad->text == NULL) {
    free(notepad);
    return NULL;
  }
  return notepad;
}

static void notepad_release(void *context) {
  struct notepad *notepad = context;
  free(notepad->text);
  host->release(notepad);
}

/* ---- The delegates -------------------------------------------------------------------------- */

static void on_key(void *context, uint32_t event, const void *payload, size_t size) {
  const char *key = payload;
  (void)event;
  if (size == 1) notepad_write(context, *key);
  called();
}

static void on_vowel(void *context, uint32_t event, const void *payload, size_t size) {
  static const char vowels[] = "aeiou";
  const char *key = payload;
  (void)event;
  for (size_t i = 0; size == 1 && vowels[i] != '\0'; i++) {
    if (vowels[i] == *key) notepad_write(context, *key);
  }
  called();
}

/* Called at most once. Its context is a single block, which the host's function frees. */
static void on_first_key(void *context, uint32_t event, const void *payload, size_t size) {
  uint64_t *before = context;
  (void)event;
  (void)payload;
  (void)size;
  *before = calls;
  called();
}

static void on_file(void *context, uint32_t event, const void *payload, size_t size) {
  const char *name = payload;
  (void)event;
  for (size_t i = 0; i < size; i++) notepad_write(context, name[i]);
  called();
}

static void on_save(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event;
  (void)payload;
  (void)size;
  notepad_write(context, 's');
  called();
  /* The plugin has done what it was loaded for. This call still runs, so this is pending. */
  saves += 1;
  if (saves == MOST_SAVES) (void)multicast_lifetime_end(host->lifetime);
}

/* ---- The start ------------------------------------------------------------------------------ */

static multicast_add_options under_lifetime(void) {
  multicast_add_options options = multicast_add_options_default();
  options.lifetime = host->lifetime;
  return options;
}

/* Adds a delegate with a new notepad, which the library owns from then on. */
static multicast_status add_with_notepad(multicast target, multicast_function function,
                                         uint64_t events) {
  multicast_delegate delegate = {function, notepad_open()};
  if (delegate.context == NULL) return MULTICAST_ERROR_OUT_OF_MEMORY;
  multicast_add_options options = under_lifetime();
  options.events = events;
  options.release = notepad_release;
  return multicast_add(target, delegate, &options, NULL);
}

static multicast_status add_first_key(void) {
  multicast_delegate delegate = {on_first_key, malloc(sizeof(uint64_t))};
  if (delegate.context == NULL) return MULTICAST_ERROR_OUT_OF_MEMORY;
  multicast_add_options options = under_lifetime();
  options.flags = MULTICAST_ONCE;
  options.release = host->release;
  return multicast_add(host->keys, delegate, &options, NULL);
}

/* If an add fails, the host ends the lifetime, so there is nothing to undo here. */
static int64_t start(const struct plugin_host *plugin_host) {
  host = plugin_host;
  multicast_status status = add_with_notepad(host->keys, on_key, 0);
  if (status == MULTICAST_OK) status = add_with_notepad(host->keys, on_vowel, 0);
  if (status == MULTICAST_OK) status = add_first_key();
  if (status == MULTICAST_OK) status = add_with_notepad(host->files, on_file, 0);
  if (status == MULTICAST_OK) {
    status = add_with_notepad(host->files, on_save, UINT64_C(1) << FILE_SAVED);
  }
  return status == MULTICAST_OK ? 5 : (int64_t)status;
}

const struct plugin plugin_interface = {start};
