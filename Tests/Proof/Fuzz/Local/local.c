/* A transport of libmulticast-local meets a hostile peer. This target performs the steps of the
 * transport's thread one by one, and the peer writes between any two steps. */

#include "../../../../Sources/Transports/Local/peer.h"
#include "../../../../Sources/Transports/Local/question.h"
#include "../../../../Sources/Transports/Local/reader.h"
#include "../../../../Sources/Transports/Local/ring.h"
#include "disturb.h"
#include "hostile.h"

#include "expect.h"
#include "history.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VICTIM_RING = RING_LEAST };
enum { LATER_MAX = 8, WAITS_MAX = 3 };

static multicast_broadcaster broadcaster;
static multicast_transport transport;
static local_client *victim;
static peer *other; /* NULL after it has been cut off */
static uint64_t now;
static uint64_t asked; /* the number of the next request */
static unsigned met;   /* the number of peers so far */
static multicast_local_question kept; /* a request that has not yet been answered */

/* ---- Between the library's steps ------------------------------------------------------------- */

static struct {
  step what;
  unsigned left; /* calls of disturb() before this step */
} later[LATER_MAX];
static unsigned later_count;

void disturb(void) {
  unsigned i = 0;
  while (i < later_count) {
    if (later[i].left-- > 0) {
      ++i;
      continue;
    }
    hostile_do(&later[i].what);
    later[i] = later[--later_count];
  }
}

/* Expects a range that begins in the peer's memory to end there, too. */
static void expect_inside(const void *from, size_t size) {
  const memory *m = other == NULL ? NULL : &other->memory;
  const unsigned char *at = from, *begin, *end;
  if (m == NULL || m->board == NULL) return;
  begin = (const unsigned char *)m->board;
  end = m->ring + 2 * m->ring_size;
  if (at >= begin && at < end) EXPECT(size <= (size_t)(end - at), "a copy leaves the memory");
}

void *copy_disturbed(void *to, const void *from, size_t size) {
  expect_inside(from, size);
  disturb();
  memcpy(to, from, size / 2);
  disturb();
  memcpy((char *)to + size / 2, (const char *)from + size / 2, size - size / 2);
  return to;
}

int keep_thread(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *),
                void *argument) {
  victim = argument;
  *thread = pthread_self();
  return 0;
}

/* ---- The victim ------------------------------------------------------------------------------ */

/* Copies the payload, so that the address sanitizer checks all of it. */
static void observe(void *context, uint32_t event, const void *payload, size_t size) {
  static unsigned char copy[HOSTILE_RING];
  EXPECT(size <= HOSTILE_RING / 2, "a payload is larger than half a ring");
  NOTE("delivered: %lld bytes", (long long)size);
  if (size > 0) memcpy(copy, payload, size);
}

/* Connects the victim to a new peer. Every second peer joined the group before the victim. Until
 * such a peer has sent its names, the victim sends it all notifications. */
static void meet(void) {
  other = peer_add(victim, hostile_connect(), ++met % 2 == 0 ? "1-0123456789abcdef" : "");
}

static void cut_off(void) {
  if (other == NULL) return;
  questions_end(victim, other);
  if (other->is_false) ++victim->expelled;
  victim->gone += other->is_met;
  peer_remove(victim, other);
  other = NULL;
  hostile_disconnect();
}

/* Answers a request immediately, or stores the request for a later step. */
static void answer(void *context, const multicast_local_question *question, uint32_t event,
                   const void *payload, size_t size) {
  observe(context, event, payload, size);
  if (event % 2 == 0) multicast_local_reply(question, payload, size);
  else kept = *question;
}

static void answer_name(unsigned number,
                        void (*function)(void *, const multicast_local_question *, uint32_t,
                                         const void *, size_t)) {
  multicast_local_answer(&transport, hostile_name(number), function, NULL, NULL);
  peers_note_names(victim);
}

static void start(void) {
  multicast_local_options options = multicast_local_options_default();
  options.broadcaster = broadcaster;
  options.ring_bytes = VICTIM_RING;
  options.overflow = MULTICAST_OVERFLOW_DROP_OLDEST;
  EXPECT_EQ(multicast_local_connect(&options, &transport), MULTICAST_OK);
  for (unsigned i = 0; i < 4; ++i)
    EXPECT_EQ(transport.subscribe(transport.context, hostile_name(i)), MULTICAST_OK);
  peers_note_names(victim);
  for (unsigned i = 0; i < 2; ++i) answer_name(i, answer);
  victim->base.thread = 0; /* lets this thread send requests */
  later_count = 0;
  now = 0;
  asked = 1;
  met = 0;
  kept = (multicast_local_question){0, 0, 0};
  meet();
}

/* Ends the victim's thread and releases its transport. */
static void end(void) {
  later_count = 0;
  cut_off();
  topics_free(&victim->base.names);
  topics_free(&victim->base.answered);
  victim->base.is_done = true;
  client_release(&victim->base);
  transport.release(transport.context);
}

static void read_all(bool is_over) {
  int count;
  if (!other->is_met) return;
  other->has_ended = is_over;
  count = reader_read(victim, other, 64);
  NOTE("read: %lld", count);
  EXPECT(count <= 64, "more is read than was asked for");
  if (count < 0) other->is_false = true;
}

static void hear(void) {
  if (!peer_hear(victim, other)) other->has_ended = true;
}

static void meet_again_if_ended(void) {
  if (other == NULL || !(other->has_ended || other->is_false)) return;
  cut_off();
  meet();
}

int work_instead(pthread_cond_t *changed, pthread_mutex_t *lock, const struct timespec *until) {
  pthread_mutex_unlock(lock);
  ++now;
  if (other != NULL) hear();
  if (other != NULL) read_all(false);
  meet_again_if_ended();
  pthread_mutex_lock(lock);
  return 0;
}

int tell_time(clockid_t clock, struct timespec *time) {
  *time = (struct timespec){0, (long)now};
  return 0;
}

static bool visit(void *context, multicast_status status, int32_t pid, const char *name,
                  const void *payload, size_t size) {
  const step *s = context;
  EXPECT(status == MULTICAST_OK || size == 0, "who has not answered has a payload");
  EXPECT(status == MULTICAST_OK || status == MULTICAST_ERROR_STATE ||
             status == MULTICAST_ERROR_OUT_OF_MEMORY || status == MULTICAST_ERROR_NOT_FOUND ||
             status == MULTICAST_ERROR_TIMEOUT, "a status that the header does not name");
  observe(NULL, 0, payload, size);
  return s->where % 2 == 0;
}

/* Sends a request. `where` determines how often the peer answers, and whether the answers are
 * correct. The victim reads the answers while the request is waiting for them. */
static void ask(const step *s) {
  static const unsigned char payload[VICTIM_RING];
  const step answers = {WRITE, (uint8_t)(ENTRY_ANSWER * 8 + 64 + s->where / 16 % 2 * 32), s->size,
                        s->small, asked + s->where / 8 % 2};
  step copy = *s;
  multicast_status status;
  for (unsigned i = s->where / 2 % 4; i > 0; --i) hostile_do(&answers);
  status = multicast_local_ask(&transport, hostile_name(s->small), 1, payload, s->size % 1024,
                               WAITS_MAX, visit, &copy);
  asked += status == MULTICAST_OK || status == MULTICAST_ERROR_TIMEOUT;
}

/* Replies to a received request, or to a forged one. */
static void reply(const step *s) {
  const multicast_local_question forged = {victim->base.handle, s->small % 4, s->large};
  multicast_local_reply(s->where % 2 == 0 ? &kept : &forged, &s->large, sizeof s->large);
}

static void publish(const step *s) {
  static const unsigned char payload[VICTIM_RING];
  const span what = {payload, s->size % (VICTIM_RING / 2 - 1024)};
  local_publish(&victim->base, s->where % 2 == 0 ? hostile_name(s->small) : "nnn", 1, what);
}

static void act(const step *s) {
  switch (s->what % STEP_KINDS) {
    case HEAR: hear(); break;
    case READ: read_all(false); break;
    case TELL: peer_tell(victim, other); break;
    case PUBLISH: publish(s); break;
    case OBSERVE:
      transport.unsubscribe(transport.context, hostile_name(s->small));
      peers_note_names(victim);
      transport.subscribe(transport.context, hostile_name(s->small));
      peers_note_names(victim);
      peers_forget_names(victim);
      break;
    case ASK: ask(s); break;
    case ANSWER:
      answer_name(s->small, NULL);
      answer_name(s->small, answer);
      break;
    case REPLY: reply(s); break;
    case END_READING: read_all(true); break;
    case MEET_AGAIN: other->has_ended = true; break;
    default: hostile_do(s);
  }
  meet_again_if_ended();
}

/* ---- Properties that must hold --------------------------------------------------------------- */

static void expect_right_ring(void) {
  uint64_t at = victim->oldest;
  EXPECT(victim->head - at <= VICTIM_RING, "the ring has more than its room");
  while (at < victim->head) {
    entry r;
    memcpy(&r, memory_at(&victim->memory, at), sizeof r);
    EXPECT(r.size >= ENTRY_LEAST && r.size <= victim->head - at, "an entry of the own ring");
    at += r.size;
  }
}

static void expect_right_numbers(void) {
  multicast_local_stats stats = multicast_local_stats_default();
  EXPECT_EQ(multicast_local_get_stats(&transport, &stats), MULTICAST_OK);
  EXPECT_EQ(stats.received, stats.delivered + stats.lost - stats.overwritten);
  EXPECT(stats.peers <= 1 && stats.overwritten < UINT64_MAX / 2, "the statistics");
  if (other != NULL) EXPECT(other->tail <= victim->head, "the tail is behind the head");
}

/* ---- The input ------------------------------------------------------------------------------- */

static void initialize(void) {
  static bool is_done;
  const multicast_delegate observer = {observe, NULL};
  if (is_done) return;
  is_done = true;
  hostile_create();
  broadcaster = multicast_broadcaster_create(NULL);
  for (unsigned i = 0; i < 4; ++i)
    EXPECT_EQ(multicast_broadcaster_register(broadcaster, hostile_name(i), observer, NULL, NULL),
              MULTICAST_OK);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  initialize();
  history_clear();
  start();
  for (; size >= sizeof(step) && other != NULL; data += sizeof(step), size -= sizeof(step)) {
    step s;
    memcpy(&s, data, sizeof s);
    if (s.what % STEP_KINDS == LATER) {
      if (later_count == LATER_MAX) continue;
      later[later_count].what = s;
      later[later_count].what.what = s.where;
      later[later_count].what.where = s.where / 4;
      later[later_count++].left = s.small % 64;
      continue;
    }
    act(&s);
    expect_right_ring();
    expect_right_numbers();
  }
  end();
  return 0;
}
