#include "topic.h"

#include <stdlib.h>
#include <string.h>

topic *topic_find(const names *all, const char *name) {
  const known_name *known = names_find(all, name);
  return known == NULL ? NULL : known->subscription;
}

topic *topic_make(names *all, const char *name) {
  known_name *known = names_find(all, name);
  topic *t;
  if (known == NULL) known = names_add(all, name);
  if (known == NULL) return NULL;
  if (known->subscription != NULL) return known->subscription;
  t = calloc(1, sizeof *t);
  if (t != NULL) {
    t->name = known;
    known->subscription = t;
  } else if (!name_is_used(known)) {
    names_remove(all, known);
  }
  return t;
}

void topic_drop(names *all, topic *t) {
  known_name *known;
  if (!places_are_none(&t->wanted_by) || !places_are_none(&t->offered_to) || t->values != NULL ||
      t->list != NULL)
    return;
  known = names_find(all, t->name->text);
  free(t);
  known->subscription = NULL;
  if (!name_is_used(known)) names_remove(all, known);
}

size_t topic_kept(const topic *t, const value *except) {
  const size_t name_bytes = strlen(t->name->text);
  const value *v;
  size_t total = 0;
  for (v = t->values; v != NULL; v = v->next)
    total += v == except ? 0 : entry_size(name_bytes, v->size);
  return total;
}

value *topic_value(const topic *t, uint32_t event) {
  value *v = t->values;
  while (v != NULL && v->event != event) v = v->next;
  return v;
}

value *value_make(uint32_t event, span payload) {
  value *v = malloc(sizeof *v + payload.size);
  if (v == NULL) return NULL;
  v->event = event;
  v->size = payload.size;
  if (payload.size > 0) memcpy(v->payload, payload.at, payload.size);
  return v;
}

/* Appends the value to the list, because values are sent in the order of their publication. */
void topic_keep(topic *t, value *v) {
  value **place = &t->values;
  v->next = NULL;
  while (*place != NULL) {
    value *old = *place;
    if (old->event == v->event) {
      *place = old->next;
      free(old);
    } else {
      place = &old->next;
    }
  }
  *place = v;
}

/* Copies the values in order, because the originals may be replaced while the copies are delivered.
 * Skips a value if there is no memory for its copy. */
static value *copy_values(const topic *t) {
  value *first = NULL, **place = &first;
  const value *v;
  for (v = t == NULL ? NULL : t->values; v != NULL; v = v->next) {
    *place = value_make(v->event, (span){v->payload, v->size});
    if (*place == NULL) continue;
    place = &(*place)->next;
    *place = NULL;
  }
  return first;
}

void local_give_kept(client *base, const char *name) {
  value *v, *next;
  pthread_mutex_lock(&base->lock);
  v = copy_values(topic_find(&base->names, name));
  pthread_mutex_unlock(&base->lock);
  for (; v != NULL; v = next) {
    next = v->next;
    multicast_broadcaster_deliver(base->settings.broadcaster, name, v->event,
                                  v->size == 0 ? NULL : v->payload, v->size);
    free(v);
  }
}

void topics_free(const names *all) {
  known_name *name;
  for (name = names_next(all, NULL); name != NULL; name = names_next(all, name)) {
    topic *t = name->subscription;
    if (t == NULL) continue;
    while (t->values != NULL) {
      value *v = t->values;
      t->values = v->next;
      free(v);
    }
    free(t);
    name->subscription = NULL;
  }
}
