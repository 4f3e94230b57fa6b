#include <string.h>

#include "history.h"
#include "memory.h"
#include "operations.h"

enum { ODD = 0xE0 }; /* this byte and larger ones choose a dead object or a forged handle */

/* Returns a forged handle: null, a handle of another kind, or a handle with one bit changed. */
static uint64_t forged(uint8_t byte, uint64_t near, uint64_t other) {
  switch (byte & 3) {
    case 0: return 0;
    case 1: return other;
    default: return near ^ UINT64_C(1) << (byte * 7 & 63);
  }
}

#define CHOOSE(NAME, ARRAY, COUNT, IS_ALIVE, ID, OTHER)                        \
  choice NAME(uint8_t byte) {                                                  \
    choice c = {NONE, 0, false};                                               \
    int i, wanted, alive = 0;                                                  \
    for (i = 0; i < COUNT; ++i) alive += ARRAY[i].IS_ALIVE;                    \
    if (byte < ODD && alive > 0) {                                             \
      wanted = byte % alive;                                                   \
      for (i = 0;; ++i)                                                        \
        if (ARRAY[i].IS_ALIVE && wanted-- == 0) break;                         \
      c.index = i;                                                             \
    } else if ((byte & 8) && COUNT > 0) {                                      \
      c.index = (byte ^ (byte >> 4)) % COUNT;                                  \
    }                                                                          \
    if (c.index != NONE) {                                                     \
      c.id = ARRAY[c.index].ID;                                                \
      c.is_alive = ARRAY[c.index].IS_ALIVE;                                    \
      return c;                                                                \
    }                                                                          \
    c.id = forged(byte, COUNT > 0 ? ARRAY[COUNT - 1].ID : 1, OTHER);           \
    for (i = 0; i < COUNT; ++i)                                                \
      if (ARRAY[i].ID == c.id) c.id = 0;                                       \
    return c;                                                                  \
  }

static uint64_t a_token(void) {
  for (int i = 0; i < model.registration_count; ++i)
    if (model.registrations[i].token.id != 0) return model.registrations[i].token.id;
  return 0;
}

static uint64_t a_multicast(void) {
  return model.multicast_count > 0 ? model.multicasts[0].handle.id : 0;
}

static CHOOSE(choose_any_multicast, model.multicasts, model.multicast_count, is_alive, handle.id,
              a_token())
CHOOSE(choose_lifetime, model.lifetimes, model.lifetime_count, is_alive, handle.id, a_multicast())
CHOOSE(choose_queue, model.queues, model.queue_count, is_alive, handle.id, a_multicast())
CHOOSE(choose_broadcaster, model.broadcasters, model.broadcaster_count, is_alive, handle.id,
       a_multicast())
static CHOOSE(choose_any_registration, model.registrations, model.registration_count, is_live,
              token.id, a_multicast())

/* Chooses a multicast. A forged handle that belongs to a transport's multicast becomes 0. */
choice choose_multicast(uint8_t byte) {
  choice c = choose_any_multicast(byte);
  multicast m = {c.id};
  if (c.index == NONE && multicast_is_valid(m)) c.id = 0;
  return c;
}

/* Chooses a registration. A forged token becomes 0 if it happens to belong to a transport, or to a
 * registration that the model does not know yet. */
choice choose_registration(uint8_t byte) {
  choice c = choose_any_registration(byte);
  for (int i = 0; i < model.registration_count && c.index == NONE; ++i)
    if (model.registrations[i].token.id == 0) c.id = 0;
  if (c.index == NONE && multicast_token_is_valid((multicast_token){c.id})) c.id = 0;
  if (c.id == 0) c.index = NONE, c.is_alive = false;
  return c;
}

/* ---- Names ----------------------------------------------------------------------------------- */

#define TEN "0123456789"
#define FIFTY TEN TEN TEN TEN TEN
#define TEXT_OF_255 FIFTY FIFTY FIFTY FIFTY FIFTY "01234"

const char *const broadcaster_names[NAMES] = {"door", "doors", TEXT_OF_255};

name_choice choose_name(uint8_t byte) {
  static const char *const none[] = {NULL, "", TEXT_OF_255 "5"};
  name_choice n;
  if (byte < ODD) {
    n.name = byte % NAMES;
    n.text = broadcaster_names[n.name];
  } else {
    n.name = NONE;
    n.text = none[byte % 3];
  }
  return n;
}

/* ---- Time limits ----------------------------------------------------------------------------- */

limit choose_limit(uint8_t byte) {
  static const uint64_t timeouts[] = {0, 1000, MULTICAST_FOREVER};
  return (limit){(byte & 1) != 0, timeouts[(byte >> 1) % 3]};
}

/* ---- Results --------------------------------------------------------------------------------- */

void allow_handle_error(outcomes *o, const choice *c) {
  if (!c->is_alive) allow(o, MULTICAST_ERROR_INVALID_HANDLE);
}

void allow_memory_error(outcomes *o, const frame *f) {
  if (memory_failures() > f->failures) allow(o, MULTICAST_ERROR_OUT_OF_MEMORY);
}

void finish(int64_t result, const outcomes *allowed) {
  NOTE("= %lld", result);
  model_leave();
  EXPECT_ALLOWED(result, allowed);
}
