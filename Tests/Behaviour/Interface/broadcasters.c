#include "broadcasters.h"

/* ---- Creation -------------------------------------------------------------------------------- */

multicast_broadcaster create(void) {
  multicast_broadcaster b = multicast_broadcaster_create(NULL);
  CHECK(b.id != 0);
  return b;
}

multicast_queue create_queue(void) {
  multicast_queue q = multicast_queue_create(NULL);
  CHECK(q.id != 0);
  return q;
}

multicast_broadcaster create_on(multicast_queue q) {
  multicast_broadcaster b = multicast_broadcaster_create(&BROADCASTER_OPTIONS(.queue = q));
  CHECK(b.id != 0);
  return b;
}

/* ---- Names ----------------------------------------------------------------------------------- */

const char *numbered(const char *prefix, int number) {
  static __thread char names[4][32];
  static __thread unsigned last;
  char *name = names[++last % 4];
  snprintf(name, sizeof names[0], "%s.%d", prefix, number);
  return name;
}

multicast find(multicast_broadcaster b, const char *name) {
  multicast m = multicast_broadcaster_multicast(b, name);
  CHECK(m.id != 0);
  return m;
}

int64_t notify(multicast_broadcaster b, const char *name) {
  return multicast_broadcaster_notify(b, name, 0, NULL, 0);
}

/* ---- Observers ------------------------------------------------------------------------------- */

multicast_token observe(multicast_broadcaster b, const char *name, multicast_delegate d) {
  return observe_with(b, name, d, NULL);
}

multicast_token observe_with(multicast_broadcaster b, const char *name,
                             multicast_delegate d, const multicast_add_options *options) {
  multicast_token token = {0};
  CHECK_OK(multicast_broadcaster_register(b, name, d, options, &token));
  CHECK(token.id != 0);
  return token;
}

void release_observer(void *context) { ADD(((observer *)context)->releases, 1); }

static void call_observer(void *context, uint32_t event, const void *payload, size_t size) {
  ADD(((observer *)context)->calls, 1);
}

multicast_delegate observing(observer *o) {
  return (multicast_delegate){call_observer, o};
}

/* ---- Threads and forks ----------------------------------------------------------------------- */

multicast_broadcaster shared;

bool is_over;

char shared_names[SHARED_NAMES][32];

void name_the_shared(void) {
  for (int i = 0; i < SHARED_NAMES; ++i) strcpy(shared_names[i], numbered(NAME, i));
}

void *look_up_all_the_time(void *unused) {
  uint64_t ids[SHARED_NAMES] = {0};
  while (!LOAD(is_over)) {
    for (int i = 0; i < SHARED_NAMES; ++i) {
      multicast m = find(shared, shared_names[i]);
      if (ids[i] == 0) ids[i] = m.id;
      CHECK_EQ(m.id, ids[i]);
      CHECK(multicast_count(m) >= 0);
    }
  }
  return NULL;
}

uint64_t growing_ids[GROWING];
int growing_count;
