#include "watches.h"

static void note(witness *w, multicast_token token, uint64_t elapsed_ns) {
  w->token = token;
  w->elapsed_ns = elapsed_ns;
  w->thread = pthread_self();
  if (w->in_function != NULL) w->in_function(w);
}

static void note_label(witness *w, const char *label) {
  snprintf(w->label, sizeof w->label, "%s", label == NULL ? "-" : label);
}

static void note_slow(void *context, multicast_token token, const char *label, uint64_t ns) {
  witness *w = context;
  note_label(w, label);
  ADD(w->slow, 1);
  note(w, token, ns);
}

static void note_stuck(void *context, multicast_token token, const char *label, uint64_t ns) {
  witness *w = context;
  note_label(w, label);
  note(w, token, ns);
  ADD(w->stuck, 1);
}

static void note_call(void *context, multicast_token token, uint32_t event, uint64_t ns) {
  witness *w = context;
  w->event = event;
  ADD(w->calls, 1);
  note(w, token, ns);
}

multicast_watch counting_calls(witness *w) {
  return WATCH_WITH(.context = w, .called = note_call);
}

multicast_watch watching(witness *w) {
  multicast_watch watch = counting_calls(w);
  watch.slow_ns = 1;
  watch.slow = note_slow;
  watch.stuck = note_stuck;
  return watch;
}

static const multicast all;

void watch(multicast m, multicast_watch watch) { CHECK_OK(multicast_set_watch(m, &watch)); }
void watch_all(multicast_watch given) { watch(all, given); }
void unwatch(multicast m) { CHECK_OK(multicast_set_watch(m, NULL)); }
void unwatch_all(void) { unwatch(all); }

multicast_token_stats counted(multicast_token token) {
  multicast_token_stats stats = multicast_token_stats_default();
  CHECK_OK(multicast_token_get_stats(token, &stats));
  CHECK_EQ(stats.struct_size, sizeof stats);
  CHECK_EQ(stats.reserved, 0);
  CHECK(stats.longest_ns <= stats.total_ns);
  CHECK(stats.total_ns <= stats.longest_ns * stats.calls);
  return stats;
}

void expect_counted(multicast_token token, uint64_t calls, uint64_t queued, uint64_t dropped) {
  multicast_token_stats stats = counted(token);
  CHECK_EQ(stats.calls, calls);
  CHECK_EQ(stats.queued, queued);
  CHECK_EQ(stats.dropped, dropped);
}
