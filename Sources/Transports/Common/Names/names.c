#include "names.h"

#include <stdlib.h>
#include <string.h>

/* The hash function FNV-1a. */
static const uint64_t hash_of_nothing = 0xcbf29ce484222325u;

static uint64_t hash_with(uint64_t hash, char next) {
  return (hash ^ (unsigned char)next) * 0x100000001b3u;
}

static known_name **bucket_of_hash(const names *all, uint64_t hash) {
  return &all->buckets[(hash ^ hash >> 32) & (all->capacity - 1)];
}

static known_name **bucket(const names *all, const char *text) {
  uint64_t hash = hash_of_nothing;
  for (; *text != '\0'; ++text) hash = hash_with(hash, *text);
  return bucket_of_hash(all, hash);
}

static void insert(names *all, known_name *name) {
  known_name **place = bucket(all, name->text);
  name->next = *place;
  *place = name;
}

/* Replaces the table with a larger one. If there is no memory for the larger table, the full table
 * remains in use. Returns false if there is no memory for the first table. */
static bool grow(names *all) {
  names larger = *all;
  size_t i;
  larger.capacity = all->capacity == 0 ? 16 : all->capacity * 2;
  larger.buckets = calloc(larger.capacity, sizeof *larger.buckets);
  if (larger.buckets == NULL) return all->capacity != 0;
  for (i = 0; i < all->capacity; ++i) {
    known_name *next, *name = all->buckets[i];
    for (; name != NULL; name = next) {
      next = name->next;
      insert(&larger, name);
    }
  }
  free(all->buckets);
  *all = larger;
  return true;
}

known_name *names_find(const names *all, const char *text) {
  known_name *name = all->capacity == 0 ? NULL : *bucket(all, text);
  while (name != NULL && strcmp(name->text, text) != 0) name = name->next;
  return name;
}

known_name *names_add(names *all, const char *text) {
  size_t size = strlen(text) + 1;
  known_name *name;
  if (all->count == all->capacity && !grow(all)) return NULL;
  name = calloc(1, sizeof *name + size);
  if (name == NULL) return NULL;
  memcpy(name->text, text, size);
  insert(all, name);
  ++all->count;
  all->sizes[(size - 1) / 64] |= (uint64_t)1 << (size - 1) % 64;
  return name;
}

void names_remove(names *all, known_name *name) {
  known_name **place = bucket(all, name->text);
  while (*place != name) place = &(*place)->next;
  *place = name->next;
  --all->count;
  free(name);
  if (all->count > 0) return;
  free(all->buckets);
  all->buckets = NULL;
  all->capacity = 0;
  memset(all->sizes, 0, sizeof all->sizes);
}

known_name *names_next(const names *all, const known_name *name) {
  size_t i = 0;
  if (name != NULL) {
    if (name->next != NULL) return name->next;
    i = (size_t)(bucket(all, name->text) - all->buckets) + 1;
  }
  while (i < all->capacity && all->buckets[i] == NULL) ++i;
  return i < all->capacity ? all->buckets[i] : NULL;
}

bool names_begins_with(const char *name, const known_name *prefix) {
  const char *rest = prefix->text + 1;
  while (*rest != '\0' && *name == *rest) ++name, ++rest;
  return *rest == '\0';
}

const known_name *names_next_prefix(const names *prefixes, const known_name *last,
                                    const char *name) {
  const size_t shorter = last == NULL ? 0 : strlen(last->text);
  uint64_t hash = hash_with(hash_of_nothing, '*');
  size_t size; /* of the text to find: an asterisk and the first `size` - 1 bytes of the name */
  if (prefixes->capacity == 0) return NULL;
  for (size = 1;; ++size) {
    if (size > shorter && (prefixes->sizes[size / 64] >> size % 64 & 1) != 0) {
      const known_name *next = *bucket_of_hash(prefixes, hash);
      while (next != NULL && (strlen(next->text) != size || !names_begins_with(name, next)))
        next = next->next;
      if (next != NULL) return next;
    }
    if (name[size - 1] == '\0') return NULL;
    hash = hash_with(hash, name[size - 1]);
  }
}

bool names_want(names *all, const char *text, bool is_wanted, uint64_t change) {
  known_name *name = names_find(all, text);
  if (name == NULL) {
    if (!is_wanted) return true;
    name = names_add(all, text);
  }
  if (name == NULL) return false;
  all->wanted = all->wanted + is_wanted - name->is_wanted;
  name->is_wanted = is_wanted;
  if (!name->is_changed) name->change = change;
  names_change(all, name);
  return true;
}

void names_change(names *all, known_name *name) {
  if (name->is_changed) return;
  name->is_changed = true;
  name->next_change = NULL;
  *(all->first_change == NULL ? &all->first_change : &all->last_change->next_change) = name;
  all->last_change = name;
}

known_name *names_take_change(names *all) {
  known_name *name = all->first_change;
  all->first_change = name->next_change;
  name->is_changed = false;
  return name;
}

void names_forget(names *all) {
  known_name *name = all->first_change, *next;
  all->first_change = NULL;
  for (; name != NULL; name = next) {
    next = name->next_change;
    name->is_changed = false;
    if (name_is_used(name) || name->state != 0 || name->subscription != NULL)
      names_change(all, name);
    else
      names_remove(all, name);
  }
}

void names_free(names *all) {
  size_t i;
  for (i = 0; i < all->capacity; ++i) {
    known_name *next, *name = all->buckets[i];
    for (; name != NULL; name = next) {
      next = name->next;
      free(name);
    }
  }
  free(all->buckets);
}
