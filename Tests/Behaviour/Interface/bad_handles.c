/* Every function refuses handles that are null, stale, forged or of another kind. */

#include "broadcasters.h"
#include "handles.h"

/* ---- One handle of each kind ----------------------------------------------------------------- */

typedef struct handle {
  handle_kind kind;
  uint64_t id;
} handle;

/* Some kinds have more than one handle, because a multicast with policies, the multicast of a name,
 * and the default broadcaster are also tested. */
enum { HANDLES = 8 };

static void create_each(handle handles[HANDLES]) {
  const multicast m = multicast_create();
  const multicast_broadcaster b = create();
  const handle made[HANDLES] = {
      {OF_MULTICAST, m.id},
      {OF_TOKEN, add(m, counter(&calls)).id},
      {OF_LIFETIME, multicast_lifetime_create().id},
      {OF_QUEUE, create_queue().id},
      {OF_BROADCASTER, b.id},
      {OF_MULTICAST, multicast_create_with(&CREATE_OPTIONS(.reentry = MULTICAST_REENTRY_DEFER)).id},
      {OF_MULTICAST, find(b, NAME).id},
      {OF_BROADCASTER, multicast_broadcaster_default().id},
  };
  memcpy(handles, made, sizeof made);
}

static bool is_alive(const handle *h) {
  switch (h->kind) {
    case OF_MULTICAST: return multicast_is_valid((multicast){h->id});
    case OF_TOKEN: return multicast_token_is_valid((multicast_token){h->id});
    case OF_LIFETIME: return multicast_lifetime_is_valid((multicast_lifetime){h->id});
    case OF_QUEUE: return multicast_queue_is_valid((multicast_queue){h->id});
    default: return multicast_broadcaster_is_valid((multicast_broadcaster){h->id});
  }
}

/* Destroys or ends each object except the default broadcaster, which cannot be destroyed. */
static void end_each(handle handles[HANDLES]) {
  for (int i = HANDLES - 2; i >= 0; --i) {
    const uint64_t id = handles[i].id;
    switch (handles[i].kind) {
      case OF_MULTICAST: CHECK_OK(multicast_destroy((multicast){id})); break;
      case OF_TOKEN: CHECK_OK(multicast_token_remove((multicast_token){id})); break;
      case OF_LIFETIME: CHECK_OK(multicast_lifetime_end((multicast_lifetime){id})); break;
      case OF_QUEUE: CHECK_OK(multicast_queue_destroy((multicast_queue){id})); break;
      default: CHECK_OK(multicast_broadcaster_destroy((multicast_broadcaster){id})); break;
    }
  }
}

/* Expects every function to refuse the value, unless the value happens to be one of the handles. */
static void expect_forged(const handle handles[HANDLES], uint64_t id) {
  for (int i = 0; i < HANDLES; ++i) {
    if (handles[i].id == id) return;
  }
  expect_nothing(id);
}

/* ---- The tests ------------------------------------------------------------------------------- */

TEST(null_handles_are_invalid_before_anything_exists) { expect_nothing(0); }

TEST(stale_handles_are_invalid_though_their_slots_are_used_again) {
  handle old[HANDLES], fresh[HANDLES];
  create_each(old);
  end_each(old);
  for (int i = 0; i < HANDLES - 1; ++i) expect_nothing(old[i].id);
  create_each(fresh);
  for (int i = 0; i < HANDLES - 1; ++i) {
    CHECK(fresh[i].id != old[i].id);
    expect_nothing(old[i].id);
  }
  for (int i = 0; i < HANDLES; ++i) CHECK(is_alive(&fresh[i]));
}

TEST(handles_of_vacant_slots_are_invalid_whatever_kind_they_claim) {
  handle gone[HANDLES];
  create_each(gone);
  end_each(gone);
  for (int i = 0; i < HANDLES - 1; ++i) {
    for (uint64_t kind = 0; kind < 16; ++kind) /* every value of the kind's four bits */
      expect_forged(gone, (gone[i].id & ~(UINT64_C(15) << 26)) | kind << 26);
  }
}

TEST(handles_of_another_kind_are_invalid) {
  handle handles[HANDLES];
  create_each(handles);
  for (int i = 0; i < HANDLES; ++i) expect_nothing_but(handles[i].kind, handles[i].id);
  for (int i = 0; i < HANDLES; ++i) CHECK(is_alive(&handles[i]));
}

TEST(forged_handles_are_invalid) {
  handle handles[HANDLES];
  uint64_t random = UINT64_C(0x9E3779B97F4A7C15);
  create_each(handles);
  CHECK_OK(multicast_destroy(multicast_create())); /* makes sure that there is a vacant slot */
  expect_nothing(UINT64_MAX);
  for (int bit = 0; bit < 64; ++bit) {
    expect_nothing(UINT64_C(1) << bit);
    for (int i = 0; i < HANDLES; ++i) expect_forged(handles, handles[i].id ^ UINT64_C(1) << bit);
  }
  for (int i = 0; i < HANDLES; ++i) { /* the kind is in four bits above the index */
    for (uint64_t kind = 0; kind < 16; ++kind)
      expect_forged(handles, (handles[i].id & ~(UINT64_C(15) << 26)) | kind << 26);
    expect_nothing(handles[i].id | 0x3FFFFFF); /* no slot has the last index */
  }
  for (int i = 0; i < 20000; ++i) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    expect_forged(handles, random);
  }
  /* The low bits refer to existing slots, some vacant and some in use. The high bits are either
   * random or zero. */
  for (uint64_t i = 0; i < 4096; ++i) {
    expect_forged(handles, (random & ~UINT64_C(0x3FFFFFFF)) | i);
    expect_forged(handles, i);
  }
  for (int i = 0; i < HANDLES; ++i) CHECK(is_alive(&handles[i]));
}

TEST_OF_MULTICAST(queue_has_nothing_that_a_forged_handle_could_lead_to) {
  /* A queue has internal objects, which no handle may reach. Try every slot with every kind of
   * handle. */
  const multicast_queue q = create_queue();
  const multicast_token token = add_queued(m, counter(&calls), q);
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  for (uint64_t kind = 0; kind < 16; ++kind) {
    for (uint64_t index = 0; index < 64; ++index) {
      for (uint64_t generation = 0; generation < 8; ++generation) {
        const uint64_t id = (generation << 30) | kind << 26 | index;
        if (id != q.id && id != m.id && id != token.id) expect_nothing(id);
      }
    }
  }
  CHECK_EQ(multicast_queue_run(q, 0), 1);
}
