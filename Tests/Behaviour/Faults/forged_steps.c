/* A program guesses a handle before it exists and uses the guess in a call. During that call, the
 * library issues this very handle. The call must either refuse the handle or behave as if it had
 * existed before. The tests make the library issue the handle at each instruction of the call. */

#include "steps.h"

#include "../Interface/transports.h"

/* The difference between the handles of two objects that use the same slot one after the other. */
static const uint64_t ONE_GENERATION = UINT64_C(1) << 30;

static uint64_t guessed;

/* ---- A delegate whose removal has to wait ---------------------------------------------------- */

static gate is_called, may_return;

FUNCTION(wait_in_call, void *unused) {
  gate_open(&is_called);
  gate_wait(&may_return);
}

static bool visit_and_wait(void *context, const multicast_delegate *delegate) {
  wait_in_call(delegate->context, 0, NULL, 0);
  return true;
}

static bool enumerate_and_wait(void *context, const multicast_registration *registration) {
  return visit_and_wait(context, &registration->delegate);
}

/* ---- The calls that use the guessed handle --------------------------------------------------- */

static multicast guess(void) { return (multicast){guessed}; }
static int64_t invoke(void) { return multicast_invoke(guess(), 0, NULL, 0); }
static int64_t invoke_with(void) {
  const multicast_invocation how = MULTICAST_INVOCATION_INIT;
  return multicast_invoke_with(guess(), &how, NULL);
}
static int64_t visit(void) { return multicast_visit(guess(), visit_and_wait, NULL); }
static int64_t enumerate(void) { return multicast_enumerate(guess(), enumerate_and_wait, NULL); }
static int64_t invoke_token(void) {
  return multicast_token_invoke((multicast_token){guessed}, 0, NULL, 0);
}
/* ---- Ways to issue the handle ---------------------------------------------------------------- */

static multicast current;
static multicast_token current_token;
static multicast_broadcaster with_transport;
static uint32_t flags; /* the flags of the multicast to be created */

static void add_waiting(void) { current_token = add(current, DELEGATE(wait_in_call, NULL)); }

static void create_guessed(void) {
  multicast_create_options options = multicast_create_options_default();
  options.flags = flags;
  current = multicast_create_with(&options);
  CHECK_EQ(current.id, guessed);
  add_waiting();
}

/* A thread that has invoked a multicast reuses the slot that it vacated last, so the next handle is
 * predictable. */
static void prepare_multicast(void) {
  current = multicast_create();
  CHECK_EQ(multicast_invoke(current, 0, NULL, 0), 0);
  guessed = current.id + ONE_GENERATION;
}

static void prepare_several_invokers(void) {
  prepare_multicast();
  let_two_threads_invoke(current);
}

static void give_out_multicast(void) {
  CHECK_OK(multicast_destroy(current));
  create_guessed();
}

/* Before the slot is reused, a multicast of a broadcaster with a transport occupies it. */
static void prepare_transport(void) {
  static wire w;
  prepare_multicast();
  memset(&w, 0, sizeof w);
  CHECK((with_transport = multicast_broadcaster_create(NULL)).id != 0);
  CHECK_OK(multicast_destroy(current));
  attach(with_transport, &w);
  CHECK_EQ(multicast_broadcaster_notify(with_transport, "Name", 0, NULL, 0), 0);
  guessed += ONE_GENERATION;
}

THREAD(notify_there, void *unused) {
  CHECK_EQ(multicast_broadcaster_notify(with_transport, "Name", 0, NULL, 0), 0);
}

static void prepare_transport_of_several(void) {
  prepare_transport();
  on_another_thread(notify_there, NULL);
}

static void give_out_after_transport(void) {
  detach(with_transport);
  create_guessed();
}

static void prepare_token(void) {
  prepare_multicast();
  add_waiting();
  guessed = current_token.id + ONE_GENERATION;
}

static void give_out_token(void) {
  CHECK_OK(multicast_token_remove(current_token));
  add_waiting();
  CHECK_EQ(current_token.id, guessed);
}

typedef struct way {
  void (*prepare)(void);
  void (*give_out)(void);
} way;

static const way after_one_invoker = {prepare_multicast, give_out_multicast};
static const way after_several = {prepare_several_invokers, give_out_multicast};
static const way after_transport = {prepare_transport, give_out_after_transport};
static const way after_used_transport = {prepare_transport_of_several, give_out_after_transport};
static const way as_token = {prepare_token, give_out_token};

/* ---- The tests ------------------------------------------------------------------------------- */

static int64_t (*function)(void);
static int64_t result;
static bool has_returned, was_called;

static void call_function(void) {
  CHECK_OK(multicast_thread_prepare());
  begin_steps();
  result = function();
  STORE(has_returned, true);
}

/* Removes the delegate during its call, and expects the removal to time out. */
THREAD(remove_during_call, void *unused) {
  while (!LOAD(has_returned) && !gate_opens_within(&is_called, 1)) continue;
  was_called = !LOAD(has_returned);
  if (was_called) CHECK_ERROR(multicast_token_remove_within(current_token, 0), TIMEOUT);
  gate_open(&may_return);
}

/* Calls the function again and again, issues the handle one instruction later each time, and
 * returns how many of the calls reached the delegate. */
static int give_out_at_each_step(way w, int64_t (*called)(void)) {
  int count = 0, times = 1, given_out_at;
  function = called;
  for (given_out_at = 0; times == 1; ++given_out_at) {
    is_called = may_return = shut;
    has_returned = false;
    w.prepare();
    pthread_t remover = start_thread(remove_during_call, NULL);
    times = answer_at_step(given_out_at, call_function, w.give_out);
    join_thread(remover);
    if (was_called) {
      ++count;
    } else if (result == 0) {
      /* the result can be 0 only if the multicast was invoked before the delegate was added */
      CHECK(w.give_out != give_out_token);
    } else if (result != MULTICAST_ERROR_STATE) {
      CHECK_ERROR(result, INVALID_HANDLE);
    }
    if (times == 1 || w.give_out == give_out_multicast || w.give_out == give_out_token)
      CHECK_OK(multicast_destroy(current));
    if (w.give_out == give_out_after_transport)
      CHECK_OK(multicast_broadcaster_destroy(with_transport));
  }
  printf("%d instructions, %d of the calls came to the delegate\n", given_out_at, count);
  CHECK(given_out_at > 20);
  return count;
}

static void give_out_in_each_way(int64_t (*called)(void)) {
  CHECK(give_out_at_each_step(after_one_invoker, called) > 0);
  CHECK(give_out_at_each_step(after_several, called) > 0);
  CHECK(give_out_at_each_step(after_transport, called) > 0);
  CHECK(give_out_at_each_step(after_used_transport, called) > 0);
}

TEST(forged_handle_given_out_during_invoke) { give_out_in_each_way(invoke); }
TEST(forged_handle_given_out_during_invoke_with) { give_out_in_each_way(invoke_with); }
TEST(forged_handle_given_out_during_visit) { give_out_in_each_way(visit); }
TEST(forged_handle_given_out_during_enumerate) { give_out_in_each_way(enumerate); }

TEST(forged_token_given_out_during_invoke) {
  CHECK(give_out_at_each_step(as_token, invoke_token) > 0);
}

/* ---- An add ---------------------------------------------------------------------------------- */

static multicast_token stored;
static const multicast_add_options *add_options;
static int calls_during_add;

FUNCTION(find_token_stored, void *unused) {
  CHECK_EQ(LOAD(stored.id), guessed);
  ADD(calls_during_add, 1);
}

static void add_stored(void) {
  CHECK_OK(multicast_thread_prepare());
  begin_steps();
  CHECK_OK(multicast_add(current, DELEGATE(find_token_stored, NULL), add_options, &stored));
}

static void invoke_guessed(void) {
  const int64_t invoked = invoke_token();
  if (invoked != 1) CHECK_ERROR(invoked, INVALID_HANDLE);
}

static int invoke_at_steps_of_add(const multicast_add_options *options, int stride) {
  int times = 1, given_out_at;
  add_options = options;
  calls_during_add = 0;
  for (given_out_at = 0; times == 1; given_out_at += stride) {
    prepare_token();
    gate_open(&may_return);
    CHECK_OK(multicast_token_remove(current_token));
    stored.id = 0;
    times = answer_at_step(given_out_at, add_stored, invoke_guessed);
    CHECK_EQ(stored.id, guessed);
    CHECK_OK(multicast_destroy(current));
  }
  printf("%d instructions, %d calls\n", given_out_at, calls_during_add);
  CHECK(given_out_at > 20);
  return calls_during_add;
}

/* An add stores the token before any other thread can call the delegate, including a thread that
 * has guessed the token. */
TEST(forged_token_finds_the_token_stored_during_add) {
  multicast_add_options options = multicast_add_options_default();
  CHECK(invoke_at_steps_of_add(NULL, 1) > 0);
  options.priority = 1;
  CHECK(invoke_at_steps_of_add(&options, 30) > 0);
}

/* With MULTICAST_VISIT_ONLY, the delegates' functions must not be called. */
TEST(forged_handle_of_visits_only_is_never_invoked) {
  flags = MULTICAST_VISIT_ONLY;
  CHECK_EQ(give_out_at_each_step(after_one_invoker, invoke), 0);
  CHECK_EQ(give_out_at_each_step(after_several, invoke_with), 0);
  CHECK(give_out_at_each_step(after_several, visit) > 0);
}
