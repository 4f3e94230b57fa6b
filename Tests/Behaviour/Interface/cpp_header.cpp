/* Contains a test for each statement in the C++ header's documentation, and uses the harness of the
 * C tests. */

/* These headers must come before the harness, which is included inside `extern "C"`. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <any>
#include <array>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "multicast.hpp"
#include "multicast/groups.hpp"
extern "C" {
#include "callbacks.h"
#include "harness.h"
}

#define NOT_REACHED(WHAT) check_failed(__FILE__, __LINE__, "here", WHAT)

using std::string;
using namespace std::chrono_literals;

namespace {

/* A lambda under test captures a copy of this shared_ptr. Once the use count is back to one, the
 * lambda has been freed. */
using witness = std::shared_ptr<int>;
witness make_witness() { return std::make_shared<int>(0); }

/* Returns the status in the exception that the body throws, or MULTICAST_OK if it throws
 * nothing. */
template <typename Body>
multicast_status failure(Body &&body) {
  try {
    body();
  } catch (const mcast::error &error) {
    CHECK_TEXT(error.what(), multicast_status_message(error.status()));
    CHECK(error.status() != MULTICAST_ERROR_OUT_OF_MEMORY);
    return error.status();
  } catch (const std::bad_alloc &) {
    return MULTICAST_ERROR_OUT_OF_MEMORY;
  }
  return MULTICAST_OK;
}

template <typename Body>
pthread_t run_thread(Body &body) {
  return start_thread(
      [](void *argument) -> void * {
        (*static_cast<Body *>(argument))();
        return nullptr;
      },
      &body);
}

/* A delegate whose call returns once `let_go` has been opened. */
struct stay {
  gate entered = GATE_INIT;
  gate let_go = GATE_INIT;
  bool has_left = false;

  void operator()() {
    gate_open(&entered);
    gate_wait(&let_go);
    STORE(has_left, true);
  }
};

mcast::options with_priority(int32_t priority) {
  mcast::options how;
  how.priority = priority;
  return how;
}

using mcast::on;

}  // namespace

/* ---- Delegates ------------------------------------------------------------------------------- */

TEST(delegates_are_invoked_by_priority_then_in_order_of_addition) {
  mcast::signal<void(char)> s;
  string text;
  s.add([&](char c) { text += 'b', text += c; });
  s.add([&](char c) { text += 'c', text += c; });
  s.add([&](char c) { text += 'd', text += c; }, with_priority(-1));
  s.add([&](char c) { text += 'a', text += c; }, with_priority(1));
  CHECK_EQ(s.size(), 4);
  CHECK_EQ(s.invoke('1'), 4);
  CHECK_EQ(s.invoke('2'), 4);
  CHECK_TEXT(text.c_str(), "a1b1c1d1a2b2c2d2");
  CHECK_EQ(s.clear(), 4);
  CHECK_EQ(s.invoke('3'), 0);
  CHECK_EQ(s.size(), 0);
}

namespace {
int plain_sum;
void add_plain(int n) { plain_sum += n; }
int add_plain_and_answer(int n) { return plain_sum += n; }
struct functor {
  int *sum;
  void operator()(long n) { *sum += static_cast<int>(n); }
};
}  // namespace

TEST(functions_and_function_objects_can_be_added) {
  mcast::signal<void(int)> s;
  int sum = 0;
  std::function<void(int)> function = [&](int n) { sum += n; };
  const functor constant{&sum};
  s.add(add_plain);
  s.add(&add_plain);
  s.add(add_plain_and_answer);
  s.add(functor{&sum});
  s.add(constant);
  s.add(function);
  s.add([&sum, calls = 0](int) mutable { sum += 100 * ++calls; });
  s.add([answer = std::make_unique<int>(1000), &sum](auto n) { sum += *answer + n; });
  CHECK_EQ(s.invoke(1), 8);
  CHECK_EQ(plain_sum, 3);
  CHECK_EQ(sum, 1104);
  CHECK_EQ(s.invoke(1), 8);
  CHECK_EQ(sum, 2308);
}

TEST(a_null_function_is_refused) {
  mcast::signal<void(int)> s;
  void (*none)(int) = nullptr;
  CHECK_STATUS(failure([&] { s.add(none); }), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(s.size(), 0);
}

namespace {
struct base {
  int sum = 0;
  void add(int n) { sum += n; }
};
struct object : base {
  int twice(int n) noexcept { return sum += 2 * n; }
  void tell(int n) const { *told += n; }
  void set(int n) { sum = n; }
  void set(const string &) {}
  int *told = nullptr;
};
}  // namespace

TEST(a_null_method_or_object_is_refused) {
  mcast::signal<void(int)> s;
  object o;
  void (object::*none)(int) = nullptr;
  object *nothing = nullptr;
  const auto shared = std::make_shared<object>();
  const std::function<void(int)> empty;
  CHECK_STATUS(failure([&] { s.add(o, none); }), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(failure([&] { s.add(std::weak_ptr<object>(shared), none); }),
               MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(failure([&] { s.add(nothing, &object::twice); }), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(failure([&] { s.add<&object::twice>(nothing); }), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_STATUS(failure([&] { s.add(empty); }), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(s.size(), 0);
}

TEST(methods_of_an_object_can_be_added) {
  mcast::signal<void(int)> s;
  int told = 0;
  object o;
  o.told = &told;
  const object &constant = o;
  s.add(o, &object::twice);
  s.add(o, &object::add); /* a method of the base class */
  s.add(static_cast<base &>(o), &base::add);
  s.add(o, &object::tell);
  s.add(constant, &object::tell);
  CHECK_EQ(s.invoke(5), 5);
  CHECK_EQ(o.sum, 20);
  CHECK_EQ(told, 10);
  s.clear();
  const mcast::registration r = s.add(o, static_cast<void (object::*)(int)>(&object::set));
  s(7);
  CHECK_EQ(o.sum, 7);
  CHECK_OK(r.remove());
  CHECK_EQ(s.invoke(8), 0);
  CHECK_EQ(o.sum, 7);
}

TEST(delegates_may_invoke_again_and_add_and_remove) {
  mcast::signal<void(int)> s;
  string text;
  mcast::registration last;
  s.add([&](int depth) {
    text += static_cast<char>('0' + depth);
    if (depth == 2) {
      s.add([&](int) { text += '!'; });
      last.remove();
    }
    if (depth < 2) CHECK_EQ(s.invoke(depth + 1), 1);
  });
  last = s.add([&](int) { text += 'x'; });
  CHECK_EQ(s.invoke(0), 1);
  CHECK_TEXT(text.c_str(), "012");
  CHECK_EQ(s.invoke(2), 2);
  CHECK_TEXT(text.c_str(), "0122!");
}

TEST(nesting_too_deep_throws_out_of_the_innermost_invocation) {
  mcast::signal<void()> s;
  int depth = 0;
  s.add([&] {
    ++depth;
    s();
  });
  CHECK_STATUS(failure([&] { s(); }), MULTICAST_ERROR_LIMIT);
  CHECK_EQ(depth, 256);
}

/* ---- Weak objects ---------------------------------------------------------------------------- */

namespace {
struct listener {
  std::vector<int> heard;
  std::function<void()> then;
  std::function<void()> at_end;
  ~listener() {
    if (at_end) at_end();
  }
  void hear(int n) {
    heard.push_back(n);
    if (then) then();
  }
};
}  // namespace

TEST(a_weak_object_is_called_while_it_lives_and_removed_when_dead) {
  mcast::signal<void(int)> s;
  auto o = std::make_shared<listener>();
  const mcast::registration r = s.add(std::weak_ptr<listener>(o), &listener::hear);
  const std::weak_ptr<listener> same = o;
  s.add(same, &listener::hear);
  CHECK_EQ(o.use_count(), 1);
  CHECK_EQ(s.invoke(4), 2);
  CHECK_EQ(s.invoke(5), 2);
  CHECK_EQ(o->heard.size(), 4);
  CHECK_EQ(o->heard[3], 5);
  CHECK_EQ(o.use_count(), 1);
  CHECK_EQ(same.use_count(), 1);
  o.reset();
  CHECK_EQ(s.invoke(6), 0);
  CHECK_EQ(s.size(), 0);
  CHECK(!r.is_valid());
}

TEST(a_weak_object_that_dies_during_an_invocation_is_not_called) {
  mcast::signal<void(int)> s;
  auto o = std::make_shared<listener>();
  bool is_dead = false;
  o->at_end = [&] { is_dead = true; };
  s.add([&](int) { o.reset(); });
  s.add(std::weak_ptr<listener>(o), &listener::hear);
  CHECK_EQ(s.invoke(1), 1);
  CHECK(is_dead);
  CHECK_EQ(s.size(), 1);
}

TEST(a_weak_object_lives_until_its_call_has_returned) {
  mcast::signal<void(int)> s;
  auto o = std::make_shared<listener>();
  string text;
  mcast::scoped_registration r = s.add(std::weak_ptr<listener>(o), &listener::hear);
  o->then = [&] {
    o.reset();
    text += "called ";
  };
  /* The object is destroyed at the end of the call. Its destructor runs inside that call and
   * removes the delegate, so the removal does not wait. */
  o->at_end = [&] {
    text += "dead";
    CHECK_STATUS(r.get().remove(), MULTICAST_PENDING);
  };
  CHECK_EQ(s.invoke(1), 1);
  CHECK_TEXT(text.c_str(), "called dead");
  CHECK_EQ(s.size(), 0);
}

TEST(a_weak_object_that_dies_while_its_call_waits_is_not_called) {
  mcast::signal<void(int)> s;
  mcast::queue q;
  auto o = std::make_shared<listener>();
  s.add(std::weak_ptr<listener>(o), &listener::hear, on(q));
  s(1);
  CHECK_EQ(q.run(), 1);
  CHECK_EQ(o->heard.size(), 1);
  s(2);
  o.reset();
  CHECK_EQ(q.run(), 0);
  CHECK_EQ(q.statistics().cancelled, 1);
  CHECK_EQ(s.size(), 0);
}

TEST(the_last_pointer_to_a_weak_object_may_go_on_another_thread) {
  struct nothing_heard {
    int alive = 1;
    int calls = 0;
    ~nothing_heard() { STORE(alive, 0); }
    void hear() {
      CHECK_EQ(LOAD(alive), 1);
      ADD(calls, 1);
    }
  };
  for (int round = 0; round < 300; ++round) {
    mcast::signal<void()> s;
    auto o = std::make_shared<nothing_heard>();
    s.add(std::weak_ptr<nothing_heard>(o), &nothing_heard::hear);
    auto body = [&] {
      while (s.invoke() == 1) {
      }
    };
    const pthread_t thread = run_thread(body);
    while (LOAD(o->calls) == 0) {
    }
    o.reset();
    join_thread(thread);
    CHECK_EQ(s.size(), 0);
  }
}

/* ---- Registrations --------------------------------------------------------------------------- */

TEST(a_registration_pauses_and_removes_its_delegate) {
  mcast::signal<void()> s;
  int calls = 0;
  mcast::registration r = s.add([&] { ++calls; });
  const mcast::registration copy = r;
  CHECK(r.is_valid());
  CHECK(r.token().id != 0 && r.token().id == copy.token().id);
  CHECK_OK(r.pause());
  CHECK_EQ(s.invoke(), 0);
  CHECK_EQ(s.size(), 1);
  CHECK_OK(copy.resume());
  CHECK_EQ(s.invoke(), 1);
  CHECK_OK(r.remove());
  CHECK_EQ(s.invoke(), 0);
  CHECK(!copy.is_valid());
  CHECK_STATUS(copy.remove(), MULTICAST_ERROR_INVALID_HANDLE);
  r = s.add([&] { ++calls; });
  CHECK_OK(r.remove_nowait());
  r = s.add([&] { ++calls; });
  CHECK_OK(r.remove_within(1s));
  CHECK_EQ(calls, 1);
  CHECK(!mcast::registration().is_valid());
}

TEST(a_delegate_can_remove_itself_and_is_freed_after_its_call) {
  mcast::signal<void()> s;
  const witness w = make_witness();
  mcast::registration r;
  r = s.add([&r, w] {
    CHECK_EQ(r.token().id, multicast_token_current().id);
    CHECK_STATUS(r.remove(), MULTICAST_PENDING);
    CHECK_EQ(w.use_count(), 2);
  });
  CHECK_EQ(w.use_count(), 2);
  s();
  CHECK_EQ(w.use_count(), 1);
  s.add([w] { CHECK_STATUS(mcast::registration(multicast_token_current()).remove_nowait(), 1); });
  s();
  CHECK_EQ(w.use_count(), 1);
}

TEST(remove_within_gives_up_when_the_time_is_up) {
  mcast::signal<void()> s;
  stay delegate;
  const witness w = make_witness();
  const mcast::registration r = s.add([&delegate, w] { delegate(); });
  auto body = [&] { s(); };
  const pthread_t thread = run_thread(body);
  gate_wait(&delegate.entered);
  CHECK_STATUS(r.remove_within(1ms), MULTICAST_ERROR_TIMEOUT);
  CHECK_STATUS(r.remove_within(-1ms), MULTICAST_ERROR_TIMEOUT);
  CHECK_EQ(w.use_count(), 2);
  gate_open(&delegate.let_go);
  join_thread(thread);
  CHECK_EQ(w.use_count(), 1);
}

TEST(a_scoped_registration_is_removed_when_it_goes_out_of_scope) {
  mcast::signal<void()> s;
  int calls = 0;
  const auto count = [&] { ++calls; };
  {
    mcast::scoped_registration r = s.add(count);
    CHECK(r.get().is_valid());
    CHECK_EQ(s.invoke(), 1);
    r = s.add(count); /* assigning removes the previous delegate */
    CHECK_EQ(s.invoke(), 1);
    mcast::scoped_registration moved = std::move(r);
    // A moved-from registration is empty.
    // NOLINTNEXTLINE(bugprone-use-after-move)
    CHECK(!r.get().is_valid());
    CHECK(moved.get().is_valid());
    r = std::move(moved);
    CHECK_EQ(s.size(), 1);
    mcast::scoped_registration &itself = r;
    r = std::move(itself);
    CHECK_EQ(s.size(), 1);
    mcast::scoped_registration none;
    CHECK(!none.get().is_valid());
  }
  CHECK_EQ(s.size(), 0);
  mcast::registration kept;
  {
    mcast::scoped_registration r{s.add(count)};
    kept = r.release();
    CHECK(!r.get().is_valid());
  }
  CHECK(kept.is_valid());
  CHECK_EQ(s.invoke(), 1);
  static_assert(!std::is_copy_constructible_v<mcast::scoped_registration> &&
                !std::is_copy_assignable_v<mcast::scoped_registration> &&
                std::is_nothrow_move_constructible_v<mcast::scoped_registration> &&
                std::is_nothrow_move_assignable_v<mcast::scoped_registration>);
}

TEST(remove_waits_for_a_call_on_another_thread) {
  mcast::signal<void()> s;
  stay delegate;
  const witness w = make_witness();
  const mcast::registration r = s.add([&delegate, w] { delegate(); });
  auto invoke = [&] { s(); };
  auto open = [&] {
    pause_ms(A_WHILE_MS);
    gate_open(&delegate.let_go);
  };
  const pthread_t invoking = run_thread(invoke);
  gate_wait(&delegate.entered);
  const pthread_t opening = run_thread(open);
  CHECK_OK(r.remove());
  CHECK(LOAD(delegate.has_left));
  CHECK_EQ(w.use_count(), 1); /* the removal has freed the lambda */
  join_thread(invoking);
  join_thread(opening);
}

TEST(a_scoped_registration_waits_for_a_call_on_another_thread) {
  mcast::signal<void()> s;
  stay delegate;
  bool is_removed = false;
  auto invoke = [&] { s(); };
  auto remover = [&, r = mcast::scoped_registration(s.add(std::ref(delegate)))]() mutable {
    {
      const mcast::scoped_registration last = std::move(r);
    }
    CHECK(LOAD(delegate.has_left));
    STORE(is_removed, true);
  };
  const pthread_t invoking = run_thread(invoke);
  gate_wait(&delegate.entered);
  const pthread_t removing = run_thread(remover);
  pause_ms(A_WHILE_MS);
  CHECK(!LOAD(is_removed));
  gate_open(&delegate.let_go);
  join_thread(removing);
  join_thread(invoking);
  CHECK(is_removed);
}

/* ---- Exceptions ------------------------------------------------------------------------------ */

TEST(the_first_exception_reaches_the_invoker_after_all_calls) {
  mcast::signal<void()> s;
  string text;
  s.add([&] { text += 'a'; });
  s.add([&] {
    text += 'b';
    throw std::runtime_error("first");
  });
  s.add([&] {
    text += 'c';
    throw std::logic_error("second");
  });
  s.add([&] { text += 'd'; });
  try {
    s();
    NOT_REACHED("nothing was thrown");
  } catch (const std::runtime_error &e) {
    CHECK_TEXT(e.what(), "first");
  }
  CHECK_TEXT(text.c_str(), "abcd");
  CHECK_EQ(s.size(), 4);
  s.clear();
  CHECK_EQ(s.invoke(), 0);
}

TEST(an_exception_goes_through_nested_invocations_one_by_one) {
  mcast::signal<void(int)> s;
  string text;
  s.add([&](int depth) {
    if (depth == 0) throw 7;
    try {
      s(depth - 1);
    } catch (int n) {
      text += static_cast<char>('0' + depth);
      if (depth < 3) throw n + 1;
      CHECK_EQ(n, 9);
    }
  });
  s.add([&](int depth) { text += static_cast<char>('a' + depth); });
  CHECK_EQ(s.invoke(3), 2);
  CHECK_TEXT(text.c_str(), "a1b2c3d");
}

TEST(an_argument_that_cannot_be_copied_is_an_exception) {
  struct stubborn {
    int copies_left;
    explicit stubborn(int copies) : copies_left(copies) {}
    stubborn(const stubborn &other) : copies_left(other.copies_left - 1) {
      if (copies_left < 0) throw 3;
    }
  };
  mcast::signal<void(const stubborn &)> s;
  int calls = 0;
  s.add([&](stubborn) { ++calls; });
  s.add([&](const stubborn &) { ++calls; });
  try {
    s(stubborn(0));
    NOT_REACHED("nothing was thrown");
  } catch (int n) {
    CHECK_EQ(n, 3);
  }
  CHECK_EQ(calls, 1);
  CHECK_EQ(s.invoke(stubborn(1)), 2);
}

namespace {
int exceptions_handled;
void handle_exception(std::exception_ptr exception) noexcept {
  try {
    std::rethrow_exception(exception);
  } catch (int n) {
    exceptions_handled += n;
  }
}
}  // namespace

TEST(an_exception_of_a_queued_call_reaches_the_handler) {
  mcast::signal<void(int)> s;
  mcast::queue q;
  int calls = 0;
  CHECK(mcast::set_exception_handler(handle_exception) == nullptr);
  s.add([](int n) { throw n; }, on(q));
  s.add([&](int) { ++calls; }, on(q));
  s.add([](int n) { throw 10 * n; });
  try {
    s(2);
    NOT_REACHED("nothing was thrown");
  } catch (int n) {
    CHECK_EQ(n, 20); /* the direct call has been made */
  }
  CHECK_EQ(exceptions_handled, 0);
  CHECK_EQ(q.run(), 2);
  CHECK_EQ(exceptions_handled, 2);
  CHECK_EQ(calls, 1);
  CHECK(mcast::set_exception_handler(nullptr) == handle_exception);
}

TEST(without_a_handler_an_exception_of_a_queued_call_terminates) {
  mcast::signal<void()> s;
  mcast::queue q;
  s.add([] { throw 5; }, on(q));
  s();
  std::set_terminate([] {
    try {
      std::rethrow_exception(std::current_exception());
    } catch (int n) {
      _exit(n == 5 ? 0 : 1);
    }
  });
  q.run();
  NOT_REACHED("it goes on");
}

TEST(a_thread_may_end_inside_a_delegate) {
  mcast::signal<void(int)> s;
  const witness w = make_witness();
  gate waiting = GATE_INIT;
  int after = 0;
  s.add([w, &waiting](int how) {
    const witness local = std::make_shared<int>(*w);
    if (how == 1) pthread_exit(nullptr);
    gate_open(&waiting);
    for (;;) pause();
  });
  s.add([&](int) { ++after; });
  auto ends = [&] {
    s(1);
    NOT_REACHED("the thread goes on");
  };
  auto is_cancelled = [&] { s(2); };
  join_thread(run_thread(ends));
  const pthread_t thread = run_thread(is_cancelled);
  gate_wait(&waiting);
  CHECK_EQ(pthread_cancel(thread), 0);
  join_thread(thread);
  CHECK_EQ(after, 0);
  CHECK_EQ(s.clear(), 2); /* no call of these delegates is running */
  CHECK_EQ(w.use_count(), 1);
}

#ifdef __GLIBC__ /* glibc's pthread_exit() unwinds the stack */
TEST(a_thread_that_ends_destroys_the_objects_of_who_called) {
  const witness w = make_witness();
  gate waiting = GATE_INIT;
  const multicast m = multicast_create();
  const multicast_delegate ends = {
      [](void *, uint32_t event, const void *, size_t) {
        if (event == 1) pthread_exit(nullptr);
      },
      nullptr};
  const multicast_delegate waits = {
      [](void *context, uint32_t event, const void *, size_t) {
        if (event != 2) return;
        gate_open(static_cast<gate *>(context));
        for (;;) pause();
      },
      &waiting};
  add(m, ends);
  add(m, waits);
  auto invoke = [&](uint32_t event) {
    // The use_count() below shows whether unwinding the stack has destroyed this copy.
    // NOLINTNEXTLINE(performance-unnecessary-copy-initialization)
    const witness local = w;
    multicast_invoke(m, event, nullptr, 0);
    NOT_REACHED("the thread goes on");
  };
  auto exits = [&] { invoke(1); };
  auto is_cancelled = [&] { invoke(2); };
  join_thread(run_thread(exits));
  CHECK_EQ(w.use_count(), 1);
  const pthread_t thread = run_thread(is_cancelled);
  gate_wait(&waiting);
  CHECK_EQ(pthread_cancel(thread), 0);
  join_thread(thread);
  CHECK_EQ(w.use_count(), 1);
  CHECK_EQ(multicast_remove_all(m), 2); /* no call of these delegates is running */
}
#endif

/* The header's own delegates catch exceptions, so this test adds its delegate through the C
 * functions. */
TEST(an_exception_that_would_pass_through_the_library_terminates) {
  enum { TERMINATED = 7, CAUGHT, GOES_ON };
  for (size_t i = 0; i < callback_count; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      std::set_terminate([] { _exit(TERMINATED); });
      try {
        callbacks[i].run([] { throw 5; });
      } catch (...) {
        _exit(CAUGHT);
      }
      _exit(GOES_ON);
    }
    int status = 0;
    CHECK_EQ(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != TERMINATED) NOT_REACHED(callbacks[i].name);
  }
}

TEST(a_thread_may_end_inside_a_delegate_that_a_queue_calls) {
  mcast::signal<void(string)> s;
  mcast::queue q;
  const witness w = make_witness();
  s.add([w](const string &) { pthread_exit(nullptr); }, on(q));
  s("text");
  auto run = [&] { q.run(); };
  join_thread(run_thread(run));
  s.clear();
  CHECK_EQ(w.use_count(), 1);
}

/* ---- The signal ------------------------------------------------------------------------------ */

TEST(what_an_invocation_returns_is_no_condition) {
  using s = mcast::signal<void(int)>;
  static_assert(std::is_void_v<decltype(std::declval<s &>()(1))>);
  static_assert(std::is_same_v<decltype(std::declval<s &>().invoke(1)), int64_t>);
  static_assert(sizeof(s) == 8 && sizeof(mcast::registration) == 8);
}

TEST(a_signal_can_be_moved) {
  mcast::signal<void()> first, second;
  const witness w = make_witness();
  string text;
  first.add([&, w] { text += 'a'; });
  second.add([&, w] { text += 'b'; });
  CHECK_EQ(w.use_count(), 3);
  mcast::signal<void()> moved = std::move(first);
  CHECK_EQ(moved.invoke(), 1);
  // NOLINTBEGIN(bugprone-use-after-move)
  CHECK_EQ(first.handle().id, 0);
  CHECK_EQ(first.invoke(), 0); /* it is empty and can be used again */
  CHECK_EQ(first.size(), 0);
  CHECK_EQ(first.clear(), 0);
  first.add([&] { text += 'c'; });
  CHECK_EQ(first.invoke(), 1);
  // NOLINTEND(bugprone-use-after-move)
  second = std::move(moved); /* destroys the previous multicast */
  CHECK_EQ(w.use_count(), 2);
  CHECK_EQ(second.invoke(), 1);
  CHECK_TEXT(text.c_str(), "aca");
  moved = mcast::signal<void()>();
  CHECK_EQ(moved.invoke(), 0);
  static_assert(!std::is_copy_constructible_v<mcast::signal<void()>> &&
                !std::is_copy_assignable_v<mcast::signal<void()>> &&
                std::is_nothrow_move_constructible_v<mcast::signal<void()>>);
}

TEST(a_constant_signal_can_be_invoked) {
  mcast::signal<void(int)> s;
  int sum = 0;
  s.add([&](int n) { sum += n; });
  const mcast::signal<void(int)> &constant = s;
  CHECK_EQ(constant.invoke(3) + constant.invoke(4), 2);
  CHECK_EQ(constant.size(), 1);
  CHECK_EQ(sum, 7);
}

TEST(a_delegate_can_destroy_the_signal_that_calls_it) {
  auto s = std::make_unique<mcast::signal<void(const string &)>>();
  const witness w = make_witness();
  string text;
  s->add([&, w](const string &argument) {
    s.reset();
    CHECK_EQ(w.use_count(), 2); /* only the lambda that is running still exists */
    text += argument;
    throw 1;
  });
  s->add([&, w](const string &) { text += "not called"; });
  CHECK_EQ(w.use_count(), 3);
  try {
    (*s)("called");
    NOT_REACHED("nothing was thrown");
  } catch (int n) {
    CHECK_EQ(n, 1);
  }
  CHECK_TEXT(text.c_str(), "called");
  CHECK_EQ(w.use_count(), 1);
}

TEST(the_end_of_a_signal_waits_for_a_call_on_another_thread) {
  auto s = std::make_unique<mcast::signal<void()>>();
  stay delegate;
  s->add(std::ref(delegate));
  auto invoke = [&target = *s] { target(); };
  const pthread_t thread = run_thread(invoke);
  gate_wait(&delegate.entered);
  auto open = [&] {
    pause_ms(A_WHILE_MS);
    gate_open(&delegate.let_go);
  };
  const pthread_t opening = run_thread(open);
  s.reset();
  CHECK(LOAD(delegate.has_left));
  join_thread(thread);
  join_thread(opening);
}

TEST(what_delegates_capture_is_freed_once) {
  const witness w = make_witness();
  auto s = std::make_unique<mcast::signal<void()>>();
  const auto delegate = [w] { ++*w; };
  const mcast::registration r = s->add(delegate);
  s->add(delegate);
  CHECK_EQ(w.use_count(), 4);
  r.remove();
  CHECK_EQ(w.use_count(), 3);
  s->clear();
  CHECK_EQ(w.use_count(), 2);
  for (int i = 0; i < 100; ++i) s->add(delegate);
  CHECK_EQ(w.use_count(), 102);
  CHECK_EQ(s->invoke(), 100);
  s.reset();
  CHECK_EQ(w.use_count(), 2);
  CHECK_EQ(*w, 100);
}

TEST(a_signal_works_with_the_functions_for_c) {
  mcast::signal<void()> s;
  int calls = 0;
  s.add([&] { ++calls; });
  CHECK(multicast_is_valid(s.handle()));
  CHECK_EQ(multicast_count(s.handle()), 1);
  mcast::options how = with_priority(-7);
  how.once = how.latest = how.no_replay = true;
  how.lifetime.id = 3;
  how.queue.id = 4;
  const multicast_add_options given = how;
  CHECK_EQ(given.struct_size, sizeof given);
  CHECK_EQ(given.flags, MULTICAST_ONCE | MULTICAST_LATEST | MULTICAST_NO_REPLAY);
  CHECK_EQ(given.priority, -7);
  CHECK(given.lifetime.id == 3 && given.queue.id == 4 && given.release == nullptr);
  const multicast_add_options defaults = mcast::options();
  const multicast_add_options expected = multicast_add_options_default();
  CHECK_EQ(memcmp(&defaults, &expected, sizeof defaults), 0);
}

TEST(threads_may_add_remove_and_invoke_at_once) {
  mcast::signal<void(int)> s;
  const witness w = make_witness();
  int64_t sum = 0;
  bool is_over = false;
  s.add([&](int n) { ADD(sum, n); });
  auto invoke = [&] {
    for (int i = 0; i < 3000; ++i) CHECK(s.invoke(1) >= 1);
  };
  auto adder = [&, w] {
    while (!LOAD(is_over)) {
      int alive = 1;
      {
        const mcast::scoped_registration r = s.add([&alive, w](int) { CHECK_EQ(alive, 1); });
      }
      alive = 0;
    }
  };
  const pthread_t threads[] = {run_thread(invoke), run_thread(invoke), run_thread(adder)};
  join_thread(threads[0]);
  join_thread(threads[1]);
  STORE(is_over, true);
  join_thread(threads[2]);
  CHECK_EQ(sum, 6000);
  CHECK_EQ(w.use_count(), 2);
}

/* ---- Arguments ------------------------------------------------------------------------------- */

TEST(values_are_those_of_the_invoker_for_all_delegates) {
  mcast::signal<void(string, int)> s;
  int calls = 0;
  const string text = "hello";
  s.add([&](string copy, int) { copy += "changed"; });
  s.add([&](auto &&got, auto &&) {
    static_assert(std::is_same_v<decltype(got), const string &>);
    CHECK(&got == &text);
    CHECK_TEXT(got.c_str(), "hello");
    ++calls;
  });
  CHECK_EQ(s.invoke(text, 1), 2);
  CHECK_EQ(calls, 1);
}

namespace {
/* A type that counts its copies and moves. */
struct copied {
  static int copies;
  static int moves;
  int number;
  explicit copied(int n) : number(n) {}
  copied(const copied &other) : number(other.number) { ++copies; }
  copied(copied &&other) noexcept : number(std::exchange(other.number, -1)) { ++moves; }
};
int copied::copies;
int copied::moves;
}  // namespace

TEST(nothing_is_copied_for_delegates_without_a_queue) {
  mcast::signal<void(copied, const copied &)> s;
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    s.add([&](const copied &a, const copied &b) { sum += a.number + b.number; });
  }
  copied one(1);
  s(one, one);
  s.invoke(copied(1), copied(1));
  CHECK_EQ(sum, 12);
  CHECK_EQ(copied::copies, 0);
  CHECK_EQ(copied::moves, 0);
}

TEST(an_argument_may_be_larger_than_the_stack) {
  struct large {
    char bytes[33 << 20];
  };
  mcast::signal<void(const large &)> s;
  const auto given = std::make_unique<large>();
  int calls = 0;
  s.add([&](const large &got) {
    CHECK(&got == given.get());
    ++calls;
  });
  s(*given);
  CHECK_EQ(calls, 1);
}

TEST(an_argument_is_not_read_before_a_delegate_reads_it) {
  struct guarded {
    mutable pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    mutable int number = 0;
    void add(int n) const {
      pthread_mutex_lock(&mutex);
      number += n;
      pthread_mutex_unlock(&mutex);
    }
  };
  static_assert(mcast::signal<void(const guarded &)>::is_queueable);
  mcast::signal<void(const guarded &)> s;
  s.add([](const guarded &shared) { shared.add(1); });
  const guarded shared;
  auto change = [&] {
    for (int i = 0; i < 2000; ++i) shared.add(1);
  };
  const pthread_t thread = run_thread(change);
  for (int i = 0; i < 2000; ++i) s(shared); /* the thread sanitizer would detect a copy */
  join_thread(thread);
  CHECK_EQ(shared.number, 4000);
}

namespace {
struct shape {
  virtual ~shape() = default;
  virtual int sides() const = 0;
};
struct square : shape {
  int sides() const override { return 4; }
};
struct plain_base {
  int a;
};
struct plain_derived : plain_base {
  int b;
};
}  // namespace

TEST(references_arrive_as_they_are) {
  mcast::signal<void(int &, const shape &, string &)> s;
  int n = 1;
  square four;
  string text;
  s.add([&](int &number, const shape &what, string &answer) {
    CHECK(&number == &n);
    CHECK(&what == &four);
    number += what.sides();
    answer += "a";
  });
  s.add([](int &number, const shape &, string &answer) {
    number *= 2;
    answer += "b";
  });
  CHECK_EQ(s.invoke(n, four, text), 2);
  CHECK_EQ(n, 10);
  CHECK_TEXT(text.c_str(), "ab");

  /* Delegates receive the original object even if a queue could copy its type. */
  mcast::signal<void(const plain_base &)> copyable;
  static_assert(copyable.is_queueable);
  plain_derived derived;
  derived.b = 6;
  copyable.add([&](const plain_base &what) {
    CHECK(&what == &derived);
    CHECK_EQ(static_cast<const plain_derived &>(what).b, 6);
  });
  CHECK_EQ(copyable.invoke(derived), 1);
}

TEST(views_arrays_functions_and_types_that_convert_arrive) {
  mcast::signal<void(std::string_view, const char *, const int (&)[2], int (&)(int), std::any)> s;
  int calls = 0;
  s.add([&](std::string_view view, const char *text, const int(&array)[2], int (&f)(int),
            const std::any &any) {
    CHECK(view == "view");
    CHECK_TEXT(text, "text");
    CHECK_EQ(array[1], 8);
    CHECK_EQ(f(0), plain_sum);
    CHECK_EQ(std::any_cast<int>(any), 9);
    ++calls;
  });
  const int array[2] = {7, 8};
  CHECK_EQ(s.invoke(string("view"), "text", array, add_plain_and_answer, 9), 1);
  CHECK_EQ(calls, 1);
}

TEST(a_type_that_can_only_be_moved_is_passed_by_reference) {
  using pointer = std::unique_ptr<int>;
  mcast::signal<void(pointer &)> by_reference;
  pointer taken;
  by_reference.add([&](pointer &p) { taken = std::move(p); });
  by_reference.add([](pointer &p) { CHECK(p == nullptr); });
  pointer given = std::make_unique<int>(5);
  CHECK_EQ(by_reference.invoke(given), 2);
  CHECK_EQ(*taken, 5);

  mcast::signal<void(pointer)> by_value;
  int sum = 0;
  by_value.add([&](const pointer &p) { sum += *p; });
  by_value.add([&](const pointer &p) { sum += *p; });
  CHECK_EQ(by_value.invoke(std::move(taken)), 2);
  CHECK_EQ(sum, 10);

  mcast::signal<void(pointer &&)> to_be_moved;
  to_be_moved.add([&](pointer &&p) { taken = std::move(p); });
  to_be_moved.add([&](pointer &&p) { CHECK(p == nullptr); });
  CHECK_EQ(to_be_moved.invoke(std::make_unique<int>(6)), 2);
  CHECK_EQ(*taken, 6);
}

namespace {
struct unknown; /* this type is never defined */
int number = 8;
const unknown &an_unknown() { return reinterpret_cast<const unknown &>(number); }
int number_of(const unknown &what) { return reinterpret_cast<const int &>(what); }
}  // namespace

TEST(an_argument_may_be_of_a_type_that_is_only_declared) {
  mcast::signal<void(const unknown &)> s;
  int sum = 0;
  s.add([&](const unknown &what) { sum += number_of(what); });
  s(an_unknown());
  CHECK_EQ(sum, 8);
}

namespace {
struct later; /* an incomplete type */
struct owner_of_signals {
  mcast::signal<void(const later &)> constant;
  mcast::signal<void(later &)> changeable;
};
void invoke_changeable(owner_of_signals &o, later &l) {
  o.changeable.add([](later &) {});
  CHECK_EQ(o.changeable.invoke(l), 1);
}
struct later {
  int value;
};
}  // namespace

TEST(a_signal_may_be_declared_with_a_type_that_is_not_yet) {
  owner_of_signals o;
  later l{4};
  invoke_changeable(o, l);
  int sum = 0;
  o.constant.add([&](const later &what) { sum += what.value; });
  o.constant(l);
  CHECK_EQ(sum, 4);
}

/* ---- Queues ---------------------------------------------------------------------------------- */

namespace {
struct alignas(32) wide {
  int value;
};
struct alignas(16) vector4 {
  float value[4];
};
struct not_copied {
  not_copied() = default;
  not_copied(const not_copied &) = delete;
  not_copied &operator=(const not_copied &) = default;
};
template <typename... Args>
constexpr bool is_queueable = mcast::signal<void(Args...)>::is_queueable;
static_assert(is_queueable<> && is_queueable<int> && is_queueable<const int &, char *> &&
              is_queueable<std::string_view, const char *, vector4, std::array<int, 40>>);
static_assert(!is_queueable<int &> && !is_queueable<int, int &> && !is_queueable<int &&>);
static_assert(is_queueable<string, const string &, wide, const wide &, std::any>);
static_assert(!is_queueable<std::unique_ptr<int>> && !is_queueable<const shape &>);
static_assert(!is_queueable<const int (&)[2]> && !is_queueable<void (&)()> &&
              !is_queueable<const volatile int &> && !is_queueable<const int &&> &&
              !is_queueable<const not_copied &>);
}  // namespace

TEST(what_is_not_queueable_cannot_be_added_with_a_queue) {
  mcast::queue q;
  mcast::signal<void(string &)> s;
  mcast::options how;
  how.queue = q; /* mcast::on(q) does not compile */
  const witness w = make_witness();
  CHECK_STATUS(failure([&] { s.add([w](string &) {}, how); }), MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK_EQ(s.size(), 0);
  CHECK_EQ(w.use_count(), 1);
  auto o = std::make_shared<functor>();
  mcast::signal<void(long &)> other;
  CHECK_STATUS(failure([&] { other.add(std::weak_ptr<functor>(o), &functor::operator(), how); }),
               MULTICAST_ERROR_INVALID_ARGUMENT);
}

TEST(a_type_with_a_large_alignment_arrives_without_a_queue) {
  mcast::signal<void(const wide &)> s;
  const wide given{3};
  int calls = 0;
  s.add([&](const wide &got) {
    CHECK(&got == &given);
    ++calls;
  });
  s(given);
  CHECK_EQ(calls, 1);
}

TEST(a_queue_delivers_copies) {
  using large = std::array<int, 40>;
  mcast::signal<void(int, const large &, vector4, std::string_view, bool)> s;
  mcast::queue q;
  int calls = 0;
  large numbers{};
  numbers[39] = 5;
  const auto check = [&](int n, const large &got, const vector4 &four, std::string_view text,
                         bool is_right) {
    CHECK_EQ(n, -1);
    CHECK(&got != &numbers);
    CHECK_EQ(got[39], 5);
    CHECK(reinterpret_cast<uintptr_t>(&four) % 16 == 0);
    CHECK(four.value[3] == 2.5f);
    CHECK(text == "static" && is_right);
    ++calls;
  };
  s.add(check, on(q));
  s.add(check, on(q));
  bool is_direct_called = false;
  s.add([&](int, const large &got, auto &&...) { is_direct_called = &got == &numbers; });
  CHECK_EQ(s.invoke(-1, numbers, vector4{{1, 2, 3, 2.5f}}, "static", true), 3);
  CHECK(is_direct_called);
  numbers[39] = 6;
  CHECK_EQ(calls, 0);
  CHECK_EQ(q.run(), 2);
  CHECK_EQ(calls, 2);

  /* Small payloads, including empty ones, are stored in the queue itself. */
  mcast::signal<void(vector4)> small;
  mcast::signal<void()> empty;
  small.add([&](const vector4 &four) {
    CHECK(reinterpret_cast<uintptr_t>(&four) % 16 == 0);
    CHECK(four.value[0] == 9.0f);
    ++calls;
  }, on(q));
  empty.add([&] { ++calls; }, on(q));
  small(vector4{{9, 0, 0, 0}});
  empty();
  CHECK_EQ(q.run(), 2);
  CHECK_EQ(calls, 4);
}

TEST(a_queue_keeps_the_characters_of_texts) {
  mcast::signal<void(std::string_view, const char *, const char *)> s;
  mcast::queue q;
  int calls = 0;
  s.add([&](std::string_view view, const char *text, const char *none) {
    CHECK(view == "a view that is too long for a small string");
    CHECK_TEXT(text, "text");
    CHECK(none == nullptr);
    ++calls;
  }, on(q));
  auto view = std::make_unique<string>("a view that is too long for a small string");
  auto text = std::make_unique<string>("text");
  s(*view, text->c_str(), nullptr);
  view->assign(view->size(), 'x');
  text->assign("gone");
  view.reset();
  text.reset();
  CHECK_EQ(q.run(), 1);
  CHECK_EQ(calls, 1);
}

TEST(a_queue_gets_one_copy_for_all_calls_of_an_invocation) {
  mcast::signal<void(const copied &)> s;
  mcast::signal<void(copied)> by_value;
  mcast::queue q;
  int sum = 0;
  const auto direct = [&](const copied &c) { sum += 100 * c.number; };
  const auto queued = [&](const copied &c) { sum += c.number; };
  for (int i = 0; i < 3; ++i) {
    s.add(direct);
    s.add(queued, on(q));
    by_value.add(direct);
    by_value.add(queued, on(q));
  }
  const copied one(1);
  s(one);
  CHECK_EQ(copied::copies, 1);
  CHECK_EQ(q.run(), 3);
  by_value(one);
  CHECK_EQ(copied::copies, 2);
  CHECK_EQ(copied::moves, 0);
  CHECK_EQ(sum, 603);
  by_value(copied(1)); /* moved into the queue, although direct delegates saw it first */
  CHECK_EQ(copied::copies, 2);
  CHECK_EQ(copied::moves, 1);
  CHECK_EQ(q.run(), 6);
  CHECK_EQ(sum, 909);
}

TEST(methods_can_be_called_through_a_queue) {
  mcast::signal<void(int)> s;
  mcast::queue q;
  object o;
  s.add(o, &object::add, on(q));
  s(2);
  CHECK_EQ(o.sum, 0);
  q.run();
  CHECK_EQ(o.sum, 2);
}

TEST(a_queue_is_run_and_waited_for) {
  mcast::signal<void(int)> s;
  mcast::queue q;
  int sum = 0;
  s.add([&](int n) { sum += n; }, on(q));
  CHECK_EQ(q.wait(0ns), 0);
  CHECK_EQ(q.wait(1ms), 0);
  CHECK_EQ(q.run(), 0);
  pollfd watched = {q.descriptor(), POLLIN, 0};
  CHECK_EQ(poll(&watched, 1, 0), 0);
  for (int n = 1; n <= 3; ++n) s(n);
  CHECK_EQ(poll(&watched, 1, 0), 1);
  CHECK_EQ(q.wait(), 3);
  CHECK_EQ(q.run(1), 1);
  CHECK_EQ(sum, 1);
  CHECK_EQ(q.wait(1s), 2);
  CHECK_EQ(q.run(), 2);
  CHECK_EQ(sum, 6);
  const multicast_queue_stats stats = q.statistics();
  CHECK_EQ(stats.delivered, 3);
  CHECK_EQ(stats.highest, 3);
}

TEST(a_queue_has_a_thread_of_its_own) {
  mcast::signal<void()> s;
  mcast::queue q;
  gate called = GATE_INIT;
  s.add([&] {
    CHECK_STATUS(q.stop(), MULTICAST_PENDING);
    gate_open(&called);
  }, on(q));
  q.start();
  CHECK_STATUS(failure([&] { q.start(); }), MULTICAST_ERROR_STATE);
  CHECK_STATUS(failure([&] { q.run(); }), MULTICAST_ERROR_STATE);
  s();
  gate_wait(&called);
  const multicast_status status = q.stop(); /* the worker may already be ending */
  CHECK(status == MULTICAST_OK || status == MULTICAST_ERROR_STATE);
}

TEST(a_queue_has_a_capacity_and_a_rule_for_what_is_too_much) {
  mcast::signal<void(int)> s;
  mcast::queue refuse(2), drop(1, mcast::overflow::drop_oldest);
  std::vector<int> refused, dropped;
  s.add([&](int n) { refused.push_back(n); }, on(refuse));
  s.add([&](int n) { dropped.push_back(n); }, on(drop));
  CHECK_EQ(s.invoke(1), 2);
  CHECK_EQ(s.invoke(2), 2);
  CHECK_EQ(s.invoke(3), 1);
  CHECK_EQ(refuse.run() + drop.run(), 3);
  CHECK(refused == std::vector<int>({1, 2}));
  CHECK(dropped == std::vector<int>({3}));
  CHECK_STATUS(failure([] { mcast::queue((1u << 24) + 1); }), MULTICAST_ERROR_INVALID_ARGUMENT);
}

TEST(the_end_of_a_queue_removes_what_delivers_there) {
  mcast::signal<void()> s;
  const witness w = make_witness();
  mcast::queue kept;
  {
    mcast::queue q;
    s.add([w] {}, on(q));
    kept = std::move(q);
    // NOLINTNEXTLINE(bugprone-use-after-move)
    CHECK_STATUS(failure([&] { q.run(); }), MULTICAST_ERROR_INVALID_HANDLE);
    CHECK_STATUS(failure([&] { q.wait(); }), MULTICAST_ERROR_INVALID_HANDLE);
    CHECK_STATUS(failure([&] { q.descriptor(); }), MULTICAST_ERROR_SYSTEM);
    CHECK_STATUS(failure([&] { q.statistics(); }), MULTICAST_ERROR_INVALID_HANDLE);
  }
  CHECK_EQ(s.invoke(), 1);
  kept = mcast::queue();
  CHECK_EQ(w.use_count(), 1);
  CHECK_EQ(s.size(), 0);
}

TEST(a_queue_may_be_destroyed_by_a_delegate_that_it_calls) {
  mcast::signal<void()> s;
  auto q = std::make_unique<mcast::queue>();
  const witness w = make_witness();
  s.add([&q, w] { q.reset(); }, on(*q));
  s();
  s();
  CHECK_EQ(q->run(), 1);
  CHECK_EQ(w.use_count(), 1);
  CHECK_EQ(s.size(), 0);
}

/* ---- Options --------------------------------------------------------------------------------- */

TEST(latest_keeps_the_newest_call_alone) {
  mcast::signal<void(int)> s;
  mcast::queue q;
  std::vector<int> got;
  mcast::options how = on(q);
  how.latest = true;
  s.add([&](int n) { got.push_back(n); }, how);
  s(1);
  s(2);
  s(3);
  CHECK_EQ(q.run(), 1);
  CHECK(got == std::vector<int>({3}));
}

TEST(once_calls_and_frees_once) {
  mcast::signal<void()> s;
  mcast::queue q;
  const witness w = make_witness();
  mcast::options how;
  how.once = true;
  s.add([w] { ++*w; }, how);
  how.queue = q.handle();
  s.add([w] { ++*w; }, how);
  CHECK_EQ(s.invoke(), 2);
  CHECK_EQ(s.invoke(), 0);
  CHECK_EQ(w.use_count(), 2);
  CHECK_EQ(q.run(), 1);
  CHECK_EQ(s.invoke(), 0);
  CHECK_EQ(*w, 2);
  CHECK_EQ(w.use_count(), 1);
  CHECK_EQ(s.size(), 0);
}

TEST(the_end_of_a_lifetime_removes_what_was_added_under_it) {
  mcast::signal<void()> first, second;
  const witness w = make_witness();
  mcast::options how;
  {
    mcast::lifetime plugin;
    how.lifetime = plugin.handle();
    first.add([w] {}, how);
    second.add([w] {}, how);
    first.add([] {});
    CHECK_EQ(multicast_lifetime_count(plugin.handle()), 2);
  }
  CHECK_EQ(first.size(), 1);
  CHECK_EQ(second.size(), 0);
  CHECK_EQ(w.use_count(), 1);
  mcast::lifetime window;
  how.lifetime = window.handle();
  first.add([w] {}, how);
  mcast::lifetime moved = std::move(window);
  CHECK_EQ(first.size(), 2);
  CHECK_OK(moved.end());
  CHECK_EQ(first.size(), 1);
  CHECK_STATUS(moved.end(), MULTICAST_ERROR_INVALID_HANDLE);
}

/* ---- Failures -------------------------------------------------------------------------------- */

TEST(an_add_that_fails_frees_what_the_delegate_captured) {
  mcast::signal<void()> s;
  const witness w = make_witness();
  mcast::options how;
  how.lifetime = mcast::lifetime().handle(); /* this temporary lifetime has already ended */
  CHECK_STATUS(failure([&] { s.add([w] {}, how); }), MULTICAST_ERROR_INVALID_HANDLE);
  how.lifetime = {};
  how.queue = mcast::queue().handle();
  CHECK_STATUS(failure([&] { s.add([w] {}, how); }), MULTICAST_ERROR_INVALID_HANDLE);
  CHECK_EQ(w.use_count(), 1);
  CHECK_EQ(s.size(), 0);

  struct stubborn {
    stubborn() = default;
    [[noreturn]] stubborn(const stubborn &) { throw 4; }
    void operator()() const {}
  };
  const stubborn delegate;
  try {
    s.add(delegate);
    NOT_REACHED("nothing was thrown");
  } catch (int n) {
    CHECK_EQ(n, 4);
  }
  CHECK_EQ(s.size(), 0);
}

TEST(out_of_memory_throws_bad_alloc_and_frees_captures) {
  use_test_allocator();
  fail_only_once = false;
  const witness w = make_witness();
  fail_after = 0;
  mcast::signal<void()> s; /* allocates nothing yet */
  CHECK_STATUS(failure([&] { s.add([] {}); }), MULTICAST_ERROR_OUT_OF_MEMORY);
  CHECK_STATUS(failure([] { mcast::lifetime(); }), MULTICAST_ERROR_OUT_OF_MEMORY);
  CHECK_STATUS(failure([] { mcast::queue(); }), MULTICAST_ERROR_OUT_OF_MEMORY);
  struct watcher : mcast::observer {};
  CHECK_STATUS(failure([] { static_cast<void>(watcher().observing()); }),
               MULTICAST_ERROR_OUT_OF_MEMORY);
  fail_after = -1;
  int failures = 0;
  for (int rounds = 0; rounds < 200; ++rounds) {
    bool is_added = false;
    for (fail_after = 0; !is_added;) {
      const int tried = fail_after;
      const multicast_status status =
          failure([&] { s.add([w] { ++*w; }, with_priority(rounds % 3)); });
      is_added = status == MULTICAST_OK;
      if (!is_added) {
        CHECK_STATUS(status, MULTICAST_ERROR_OUT_OF_MEMORY);
        ++failures;
        fail_after = tried + 1;
      }
      CHECK_EQ(w.use_count(), 1 + rounds + (is_added ? 1 : 0));
      CHECK_EQ(s.size(), rounds + (is_added ? 1 : 0));
    }
  }
  CHECK(failures >= 200);
  fail_after = -1;
  CHECK_EQ(s.invoke(), 200);
  CHECK_EQ(*w, 200);
}

TEST(a_thread_that_invokes_without_memory_gets_bad_alloc) {
  use_test_allocator();
  mcast::signal<void()> s;
  int calls = 0;
  s.add([&] { ++calls; });
  fail_only_once = false;
  fail_after = 0;
  CHECK_STATUS(failure([&] { s(); }), MULTICAST_ERROR_OUT_OF_MEMORY);
  fail_after = -1;
  CHECK_EQ(s.invoke(), 1);
  CHECK_EQ(calls, 1);
}

/* ---- Features that Tests/Languages/Cpp tests in greater detail ------------------------------- */

namespace {
struct watcher : mcast::observer {
  int sum = 0;
  void hear(int n) { sum += n; }
};
}  // namespace

TEST(what_is_added_with_an_observer_ends_with_it) {
  mcast::signal<void(int)> s;
  {
    watcher w;
    CHECK_EQ(w.count(), 0);
    s.add(&w, &watcher::hear);
    s.add<&watcher::hear>(w, mcast::priority(1));
    s.add(w, [&w](int n) { w.sum += n; });
    watcher copy = w;
    copy = w;
    CHECK_EQ(w.count(), 3);
    s(2);
    CHECK_EQ(w.sum, 6);
    CHECK_EQ(copy.count(), 0);
  }
  CHECK(s.empty());
}

TEST(a_tracked_delegate_is_gone_when_an_object_is_dead) {
  mcast::signal<void(int)> s;
  auto first = std::make_shared<int>(), second = std::make_shared<int>();
  int sum = 0;
  const mcast::registration r = s.add(mcast::tracked([&](int n) { sum += n; }, first, second));
  s(1);
  CHECK(r.is_valid());
  second.reset();
  CHECK(!r.is_valid());
  CHECK_EQ(sum, 1);
}

TEST(delegates_are_removed_by_function_method_and_object) {
  mcast::signal<void(int)> s;
  mcast::queue q;
  object o;
  s.add(add_plain, on(q));
  s.add(add_plain, mcast::unique | mcast::priority(1));
  s.add(o, &object::twice);
  s.add(o, &object::twice, mcast::unique);
  s.add(o, &object::add);
  s.add<&object::twice>(o, mcast::at_front);
  CHECK_EQ(s.size(), 4);
  CHECK_OK(s.remove(add_plain).status());
  CHECK_OK(s.remove(o, &object::add).status());
  CHECK_STATUS(s.remove(o, &object::add).status(), MULTICAST_ERROR_NOT_FOUND);
  CHECK_OK(s.remove<&object::twice>(o).status());
  CHECK_EQ(s.remove_object(o), 1);
  CHECK(s.empty());
}

TEST(pauses_of_registrations_signals_and_groups_are_counted) {
  mcast::signal<void()> s;
  mcast::groups<string> names;
  int calls = 0;
  const mcast::registration r = s.add([&] { ++calls; }, names.in("a"));
  s.connectable().add([&] { ++calls; }, names.in("b") | mcast::once);
  {
    const mcast::scoped_pause of_one(r);
    const auto of_group = names.pause("a");
    CHECK(r.is_paused());
    const mcast::scoped_pause outer(s);
    {
      mcast::scoped_pause inner(s), other = std::move(inner);
      inner = std::move(other);
    }
    CHECK(s.is_paused());
    CHECK_EQ(s.invoke(), 0);
  }
  CHECK(!r.is_paused());
  CHECK_EQ(s.invoke(), 2);
  CHECK_EQ(names.count("b"), 0);
  CHECK_EQ(names.remove("a"), 1);
  CHECK_EQ(calls, 2);
}

TEST(a_queue_calls_what_is_posted_and_answers) {
  mcast::signal<void(string)> s;
  mcast::queue q;
  string text;
  CHECK(q.post([&] { text += 'a'; }));
  q.run();
  CHECK_EQ(q.post_and_wait([&] { return text.size(); }), 1);
  q.post([] {});
  CHECK_EQ(q.clear(), 1);
  q.start();
  s.add([&](const string &got) { text += got; }, on(q));
  s.add_extended([](mcast::registration self, const string &) {
    CHECK(self == mcast::current());
  });
  const multicast_outcome outcome = s.invoke_and_wait("b");
  CHECK_EQ(outcome.finished, 1);
  CHECK_EQ(outcome.called, 1);
  CHECK_TEXT(text.c_str(), "ab");
  try {
    q.post_and_wait([]() -> int { throw 3; });
    NOT_REACHED("nothing was thrown");
  } catch (int n) {
    CHECK_EQ(n, 3);
  }
}

TEST(results_are_collected_and_folded) {
  mcast::signal<int(int)> s;
  mcast::lifetime all;
  s.add([](int n) { return n; }, mcast::under(all));
  s.add([](int n) { return 2 * n; }, mcast::under(all));
  CHECK_EQ(all.count(), 2);
  CHECK(s.collect(3) == std::vector<int>({3, 6}));
  CHECK_EQ(s.fold(1, [](int sum, int n) { return sum + n; }, 3), 10);
  CHECK_EQ(s(3).value_or(0), 6);
  CHECK_EQ(s.first_of(3).value_or(0), 3);
  CHECK(s.all(3) && s.any(3) && !s.any(0));
  CHECK_EQ(s.each([](int n) { return n != 3; }, 3), 1);
}

TEST(results_come_one_by_one_and_nothing_unasked_is_called) {
  mcast::signal<int(const std::string &)> s;
  int calls = 0;
  for (int i = 0; i < 3; ++i) {
    s.add([&calls, i](const std::string &text) {
      ++calls;
      return i + static_cast<int>(text.size());
    }, i == 1 ? mcast::once : mcast::options());
  }
  int sum = 0;
  for (const int each : s.results("ab")) {
    sum += each;
    if (each == 3) break;
  }
  CHECK_EQ(sum, 5);
  CHECK_EQ(calls, 2);
  CHECK_EQ(s.size(), 2); /* the MULTICAST_ONCE delegate has been removed */
  const auto add = [](auto i, auto end) {
    int all = 0;
    while (i != end) all += *i++;
    return all;
  };
  CHECK_EQ(s.combine(add, ""), 2);
}
