/* The names that are subscribed, and the list of those that the broker has to be told of. */

#include "client.h"

#include <stdlib.h>
#include <string.h>

static size_t hash(const char *text) {
  uint64_t value = 0xcbf29ce484222325u;
  for (; *text != '\0'; ++text) value = (value ^ (unsigned char)*text) * 0x100000001b3u;
  return (size_t)(value ^ value >> 32);
}

static known_name **bucket(const name_table *table, const char *text) {
  return &table->buckets[hash(text) & (table->capacity - 1)];
}

static bool grow(name_table *table) {
  name_table larger = *table;
  size_t i;
  larger.capacity = table->capacity == 0 ? 16 : table->capacity * 2;
  larger.buckets = calloc(larger.capacity, sizeof *larger.buckets);
  if (larger.buckets == NULL) return table->capacity != 0;
  for (i = 0; i < table->capacity; ++i) {
    known_name *next, *entry = table->buckets[i];
    for (; entry != NULL; entry = next) {
      known_name **place = bucket(&larger, entry->text);
      next = entry->next;
      entry->next = *place;
      *place = entry;
    }
  }
  free(table->buckets);
  *table = larger;
  return true;
}

known_name *names_find(const name_table *table, const char *text) {
  known_name *entry;
  if (table->capacity == 0) return NULL;
  for (entry = *bucket(table, text); entry != NULL; entry = entry->next) {
    if (strcmp(entry->text, text) == 0) return entry;
  }
  return NULL;
}

known_name *names_add(name_table *table, const char *text) {
  size_t size = strlen(text) + 1;
  known_name **place, *entry;
  if (table->count == table->capacity && !grow(table)) return NULL;
  entry = calloc(1, sizeof *entry + size);
  if (entry == NULL) return NULL;
  memcpy(entry->text, text, size);
  place = bucket(table, text);
  entry->next = *place;
  *place = entry;
  ++table->count;
  return entry;
}

void names_remove(name_table *table, known_name *entry) {
  known_name **place = bucket(table, entry->text);
  while (*place != entry) place = &(*place)->next;
  *place = entry->next;
  --table->count;
  free(entry);
}

void names_change(name_table *table, known_name *entry) {
  if (entry->is_changed) return;
  entry->is_changed = true;
  entry->next_change = NULL;
  if (table->first_change == NULL) {
    table->first_change = entry;
  } else {
    table->last_change->next_change = entry;
  }
  table->last_change = entry;
}

known_name *names_take_change(name_table *table) {
  known_name *entry = table->first_change;
  if (entry == NULL) return NULL;
  table->first_change = entry->next_change;
  entry->is_changed = false;
  return entry;
}

void names_free(name_table *table) {
  size_t i;
  for (i = 0; i < table->capacity; ++i) {
    known_name *next, *entry = table->buckets[i];
    for (; entry != NULL; entry = next) {
      next = entry->next;
      free(entry);
    }
  }
  free(table->buckets);
}
