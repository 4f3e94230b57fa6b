#include "handles.h"

/* ---- Arguments ------------------------------------------------------------------------------- */

static int refused_releases;

static void never_call(void *context, uint32_t event, const void *payload, size_t size) {
  CHECK(!"a call without a registration");
}

const multicast_delegate never_called = {never_call, &refused_releases};
multicast_add_options handle_options = {.struct_size = sizeof(multicast_add_options),
                                        .release = count_release};
multicast_token handle_token;
multicast_status handle_status;
multicast_delegate handle_listed;

bool never_visit(void *context, const multicast_delegate *delegate) {
  CHECK(!"a visit without a registration");
  return true;
}

bool never_enumerate(void *context, const multicast_registration *registration) {
  return never_visit(context, NULL);
}

bool never_write(void *context, const char *line, size_t size) {
  CHECK(!"a report of nothing");
  return true;
}

/* ---- Expectations ---------------------------------------------------------------------------- */

static void expect_refused(const handle_call *c, uint64_t id) {
  char line[64];
  handle_token.id = 77;
  refused_releases = 0;
  int64_t result = c->call(id);
  if (result != MULTICAST_ERROR_INVALID_HANDLE || refused_releases != c->releases ||
      (c->releases > 0 && handle_token.id != 0)) {
    snprintf(line, sizeof line, "with %llx is %lld, and releases %d", (unsigned long long)id,
             (long long)result, refused_releases);
    check_failed(__FILE__, __LINE__, c->function, line);
  }
}

/* Like expect_refused(), but for a handle in the options of an add, where 0 is valid and stands for
 * no object. */
static void expect_refused_option(uint64_t id, multicast_add_options with_it) {
  if (id == 0) return;
  multicast into = multicast_create();
  with_it.release = count_release;
  refused_releases = 0;
  handle_token.id = 77;
  CHECK_ERROR(multicast_add(into, never_called, &with_it, &handle_token), INVALID_HANDLE);
  CHECK_EQ(handle_token.id, 0);
  CHECK_EQ(refused_releases, 1);
  CHECK_EQ(multicast_count(into), 0);
  CHECK_OK(multicast_destroy(into));
}

void expect_no(handle_kind kind, uint64_t id) {
  CHECK(handle_call_count > 60);
  for (size_t i = 0; i < handle_call_count; ++i) {
    const handle_call *c = &handle_calls[i];
    if (c->kind == kind && !(id == 0 && c->takes_none)) expect_refused(c, id);
  }
  if (kind == OF_LIFETIME) expect_refused_option(id, ADD_OPTIONS(.lifetime = {id}));
  if (kind == OF_QUEUE) {
    expect_refused_option(id, ADD_OPTIONS(.queue = {id}));
    if (id != 0)
      CHECK_EQ(multicast_broadcaster_create(&BROADCASTER_OPTIONS(.queue = {id})).id, 0);
  }
}

void expect_nothing(uint64_t id) { expect_nothing_but(HANDLE_KINDS, id); }

void expect_nothing_but(handle_kind kind, uint64_t id) {
  for (int other = 0; other < HANDLE_KINDS; ++other)
    if (other != (int)kind) expect_no((handle_kind)other, id);
}
