#define _GNU_SOURCE
#include "parcel.h"

#include <stdlib.h>
#include <string.h>

#include "actor.h"
#include "atomics.h"
#include "context.h"
#include "failure.h"
#include "kept.h"

enum { ALIVE = 0x600DFACE, OWN = 0x600D0E0E, ENDED = 0x0DEADFAC };

typedef struct parcel {
  uint32_t state;
  uint32_t word; /* not atomic, so that the thread sanitizer detects races */
  uint32_t event;
  size_t size;
  receipts *receipts;
  unsigned char bytes[];
} parcel;

static int64_t alive;
static parcel *newest;
static uint64_t releases;
static void (*release_body)(void);

int64_t parcel_count(void) { return LOAD(alive); }
uint64_t parcel_releases(void) { return LOAD(releases); }
void set_release_body(void (*body)(void)) { release_body = body; }

receipts *receipts_make(void) {
  receipts *r = calloc(1, sizeof *r);
  MUST(r != NULL, "memory");
  r->references = 1;
  return r;
}

void receipts_release(receipts *r) {
  if (__atomic_sub_fetch(&r->references, 1, __ATOMIC_ACQ_REL) == 0) free(r);
}

static parcel *parcel_of(const void *payload) {
  return (parcel *)((char *)(uintptr_t)payload - offsetof(parcel, bytes));
}

static void *make(uint32_t state, uint32_t event, size_t size, receipts *r) {
  parcel *p = malloc(sizeof *p + size);
  MUST(p != NULL, "memory");
  p->state = state;
  p->word = (uint32_t)(uintptr_t)p;
  p->event = event;
  p->size = size;
  p->receipts = r;
  ADD(r->references, 1);
  memcpy(p->bytes, payload_of(event, size), size);
  STORE(newest, p); /* without this, gcc's analyzer reports a leak */
  return p->bytes;
}

void *parcel_make(uint32_t event, size_t size, receipts *r) {
  ADD(alive, 1);
  ADD(r->left, 1);
  return make(ALIVE, event, size, r);
}

void *parcel_make_own(uint32_t event, size_t size, receipts *r) {
  return make(OWN, event, size, r);
}

static void end(parcel *p) {
  receipts *r = p->receipts;
  keep_for_a_while(p, sizeof *p + p->size);
  receipts_release(r);
}

static void check_alive(parcel *p, const char *when) {
  uint32_t state = LOAD(p->state);
  MUST(state == ALIVE || state == OWN, "parcel %s, state 0x%x", when, state);
  MUST(p->word == (uint32_t)(uintptr_t)p, "parcel overwritten %s", when);
}

void parcel_end_own(void *payload) {
  parcel *p = parcel_of(payload);
  uint32_t was = OWN;
  MUST(CHANGE(p->state, &was, ENDED), "parcel ends twice, state 0x%x", was);
  end(p);
}

/* Runs the body. The thread must not end inside the body, because it may be in the middle of a
 * library function. */
static void run_body(bool is_quiet) {
  if (is_quiet) return;
  ++actor_current()->releases;
  release_body();
  --actor_current()->releases;
}

const void *parcel_copy(const void *payload, size_t size) {
  parcel *p = parcel_of(payload);
  check_alive(p, "at copy");
  MUST(LOAD(p->state) == OWN, "the copy of a parcel is copied");
  MUST(size == p->size, "size %zu, not %zu", size, p->size);
  MUST(ADD(p->receipts->copies, 1) == 1, "copies: %d", p->receipts->copies);
  run_body(p->receipts->is_quiet);
  if (one_in(16)) return NULL;
  return parcel_make(p->event, size, p->receipts);
}

void parcel_release(const void *payload, size_t size) {
  parcel *p = parcel_of(payload);
  uint32_t was = ALIVE;
  MUST(CHANGE(p->state, &was, ENDED), "parcel released twice, or never handed over, state 0x%x",
       was);
  MUST(size == p->size, "size %zu, not %zu", size, p->size);
  MUST(!is_in_child(), "a payload of the parent is released in the child of a fork");
  p->word = ENDED;
  ADD(releases, 1);
  ADD(alive, -1);
  MUST(ADD(p->receipts->left, -1) >= 0, "releases of the parcels of an invocation");
  bool is_quiet = p->receipts->is_quiet;
  end(p);
  run_body(is_quiet);
}

void parcel_call_begins(uint32_t event, const void *payload, size_t size) {
  parcel *p = parcel_of(payload);
  check_alive(p, "at the begin of a call");
  MUST(p->event == event && p->size == size, "event %u with %zu bytes, not %u with %zu", event,
       size, p->event, p->size);
  ADD(p->receipts->begun, 1);
}

void parcel_call_ends(uint32_t event, const void *payload, size_t size) {
  parcel *p = parcel_of(payload);
  check_alive(p, "at the end of a call");
  MUST(p->event == event && p->size == size, "event %u with %zu bytes, not %u with %zu", event,
       size, p->event, p->size);
}

void parcel_call_returns(const void *payload) { ADD(parcel_of(payload)->receipts->returned, 1); }
