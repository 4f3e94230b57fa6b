#include "queues.h"
#include "notes.h"

/* ---- Creation -------------------------------------------------------------------------------- */

multicast_queue default_queue(void) {
  multicast_queue q = multicast_queue_create(NULL);
  CHECK(q.id != 0);
  return q;
}

multicast_token add_flagged(multicast m, multicast_delegate d, multicast_queue q, uint32_t flags) {
  multicast_add_options options = ADD_OPTIONS(.queue = q);
  options.flags = flags;
  options.release = d.function == note_call ? count_release_of : NULL;
  return add_with(m, d, &options);
}

void fill_narrow(narrow *n, const multicast_add_options *more) {
  multicast_add_options options = more != NULL ? *more : multicast_add_options_default();
  n->queue = queue_with(1, MULTICAST_OVERFLOW_BLOCK);
  n->target = multicast_create();
  options.queue = n->queue;
  n->token = add_with(n->target, noting('a'), &options);
  CHECK_EQ(invoke_number(n->target, 1), 1);
}

/* ---- Statistics ------------------------------------------------------------------------------ */

const char *figures(multicast_queue q) {
  static char text[256];
  static const char *const names[] = {"pending", "queued",    "delivered", "refused",
                                      "dropped", "cancelled", "coalesced"};
  multicast_queue_stats s = stats_of(q);
  uint64_t values[7];
  int used = 0;
  memcpy(values, &s.pending, sizeof values);
  text[0] = '\0';
  for (size_t i = 0; i < 7; ++i) {
    if (values[i] != 0)
      used += snprintf(text + used, sizeof text - (size_t)used, "%s%s %llu", used ? ", " : "",
                       names[i], (unsigned long long)values[i]);
  }
  return text;
}

/* ---- Running threads ------------------------------------------------------------------------- */

THREAD(run_once, runner *r) {
  r->result = multicast_queue_run(r->queue, r->max);
  gate_open(&r->returned);
}

void run_in_background(runner *r, multicast_queue q, size_t max) {
  r->queue = q;
  r->max = max;
  r->result = INT64_MIN;
  r->returned = shut;
  r->thread = start_thread(run_once, r);
}

int64_t run_finished(runner *r) {
  join_thread(r->thread);
  return r->result;
}

int64_t run_elsewhere(multicast_queue q, size_t max) {
  runner r;
  run_in_background(&r, q, max);
  return run_finished(&r);
}

void *run_on_a_new_thread(void *argument) {
  runner *r = argument;
  r->result = multicast_queue_run(r->queue, 0);
  return NULL;
}

/* ---- Calls that use their queue -------------------------------------------------------------- */

void begin_requeuing(requeuer *r, multicast_function function, int left) {
  r->target = multicast_create();
  r->queue = default_queue();
  r->left = left;
  r->made = 0;
  r->nested = 0;
  add_queued(r->target, DELEGATE(function, r), r->queue);
  CHECK_EQ(invoke_number(r->target, 1), 1);
}

void run_inside(void *context, uint32_t event, const void *payload, size_t size) {
  requeuer *r = context;
  int number;
  memcpy(&number, payload, sizeof number);
  note_call((void *)(intptr_t)'(', event, payload, size);
  if (number % 2 == 1) r->nested += multicast_queue_run(r->queue, 1);
  note_call((void *)(intptr_t)')', event, payload, size);
}

multicast_queue doomed;

static void destroy_doomed(void *context, uint32_t event, const void *payload, size_t size) {
  note_call(context, event, payload, size);
  CHECK_STATUS(multicast_queue_destroy(doomed), MULTICAST_PENDING);
  CHECK_ERROR(multicast_queue_destroy(doomed), INVALID_HANDLE);
  CHECK_ERROR(multicast_queue_run(doomed, 0), INVALID_HANDLE);
}

void add_destroyer(multicast m) {
  multicast_delegate d = noting('d');
  d.function = destroy_doomed;
  add_with(m, d, &ADD_OPTIONS(.queue = doomed, .release = count_release_of));
}

bool visit_all(void *context, const multicast_delegate *delegate) {
  delegate->function(delegate->context, 0, context, sizeof(int));
  return true;
}
