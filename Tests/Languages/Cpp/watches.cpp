// Tests watches: what they report, how they end, and their statistics.
#include <chrono>
#include <optional>
#include <stdexcept>

#include "test.hpp"

#include <multicast/watch.hpp>

namespace watch_tests {

using namespace std::chrono_literals;
using std::chrono::nanoseconds;

// Waits for a millisecond, so that a call takes a measurable time.
void pass_a_moment() {
  const auto begin = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() < begin + 1ms) std::this_thread::yield();
}

mcast::watch_options tell(std::function<void()> of_call) {
  mcast::watch_options how;
  how.called = [of_call = std::move(of_call)](mcast::registration, uint32_t, nanoseconds) {
    of_call();
  };
  return how;
}

TEST_CASE("a watch is told of each call, until its scope ends") {
  mcast::signal<void(int)> s;
  mcast::queue q;
  std::vector<mcast::registration> told;
  mcast::watch_options how;
  how.called = [&](mcast::registration which, uint32_t event, nanoseconds elapsed) {
    CHECK(event == 0);
    CHECK(elapsed >= 1ms);
    told.push_back(which);
  };
  const mcast::registration a = s.add([](int) { pass_a_moment(); });
  const mcast::registration b = s.add([](int) { pass_a_moment(); }, mcast::on(q));
  s(1);
  CHECK(q.run() == 1);
  {
    const mcast::watch here(s, how);
    CHECK(told.empty());
    s(2);
    CHECK(told == std::vector<mcast::registration>{a});
    CHECK(q.run() == 1);
    CHECK(told == std::vector<mcast::registration>{a, b});
  }
  s(3);
  q.run();
  CHECK(told.size() == 2);
}

TEST_CASE("calls are slow from a time on") {
  mcast::signal<int()> s;
  std::string told;
  mcast::watch_options how;
  how.slow = [&](mcast::registration which, const char *label, nanoseconds elapsed) {
    CHECK(elapsed >= 1ms);
    CHECK(which);
    told += label != nullptr ? label : "-";
  };
  s.add([] { return pass_a_moment(), 1; }, mcast::label("slow"));
  s.add([] { return pass_a_moment(), 1; });
  SUBCASE("of a millisecond") {
    how.slow_after = 1ms;
    const mcast::watch here(s, how);
    s();
    CHECK(told == "slow-");
  }
  SUBCASE("of hours") {
    how.slow_after = 1h;
    const mcast::watch here(s, how);
    s();
    CHECK(told.empty());
  }
  SUBCASE("never") {
    how.slow_after = -1ms;
    const mcast::watch here(s, how);
    s();
    CHECK(told.empty());
  }
}

TEST_CASE("a removal that waits for long is told") {
  mcast::signal<void()> s;
  gate entered, let_go;
  mcast::registration stuck_for;
  std::string label;
  const mcast::registration r = s.add([&] {
    entered.open();
    let_go.wait();
  }, mcast::label("door"));
  mcast::watch_options how;
  how.slow_after = 1ms;
  how.stuck = [&](mcast::registration which, const char *given, nanoseconds elapsed) {
    CHECK(elapsed >= 1ms);
    stuck_for = which;
    label = given;
    let_go.open();
  };
  const mcast::watch here(s, how);
  std::thread invoker([&] { s(); });
  entered.wait();
  CHECK(r.remove() == MULTICAST_OK);
  invoker.join();
  CHECK(stuck_for == r);
  CHECK(label == "door");
}

TEST_CASE("an invocation that waits for long is told") {
  mcast::signal<void(std::string)> s;
  mcast::queue q;
  gate let_go;
  bool is_of_no_call = false;
  s.add([](const std::string &) {}, mcast::on(q));
  mcast::watch_options how;
  how.slow_after = 1ms;
  how.stuck = [&](mcast::registration which, const char *label, nanoseconds) {
    is_of_no_call = which == mcast::registration() && label == nullptr;
    let_go.open();
  };
  const mcast::watch here(s, how);
  std::thread runner([&] {
    let_go.wait();
    q.run();
  });
  CHECK(s.invoke_and_wait("text").finished == 1);
  runner.join();
  CHECK(is_of_no_call);
}

TEST_CASE("a signal that grows is told, with what was added most") {
  mcast::signal<void()> s;
  std::string told;
  mcast::watch_options how;
  how.listener_warning_count = 2;
  how.listener_warning = [&](multicast target, uint64_t count, const char *label,
                    multicast_function function, uint64_t most) {
    CHECK(target.id != 0);
    CHECK((label == nullptr) == (function != nullptr));
    told += std::to_string(count) + (label != nullptr ? label : "-") + std::to_string(most) + " ";
  };
  const mcast::watch here(s, how);
  for (int i = 0; i < 3; ++i) s.add([] {});
  for (int i = 0; i < 5; ++i) s.add([] {}, mcast::label("leak"));
  CHECK(told == "2-2 4-3 8leak5 ");
}

// ---- Watched signals ------------------------------------------------------------------------

TEST_CASE("all signals are watched, one with an own watch by that") {
  mcast::signal<void()> early, own;
  int all = 0, of_own = 0;
  early.add([] {});
  own.add([] {});
  const mcast::watch here(tell([&] { ++all; }));
  mcast::signal<void()> late;
  late.add([] {});
  {
    const mcast::watch inner(own, tell([&] { ++of_own; }));
    early();
    own();
    late();
    CHECK(all == 2);
    CHECK(of_own == 1);
  }
  own();
  CHECK(all == 3);
  CHECK(of_own == 1);
}

TEST_CASE("a signal without a multicast is watched, and may be moved") {
  int told = 0;
  mcast::signal<void()> s;
  mcast::watch outer;
  {
    mcast::watch here(s, tell([&] { ++told; }));
    mcast::watch next(std::move(here));
    outer = std::move(next);
    CHECK(here.end() == MULTICAST_OK);
  }
  const auto moved = std::make_unique<mcast::signal<void()>>(std::move(s));
  moved->add([] {});
  (*moved)();
  CHECK(told == 1);
  s.add([] {});
  s();
  CHECK(told == 1);
  mcast::watch other(s, tell([&] { told += 10; }));
  outer = std::move(other);  // ends the first watch
  (*moved)();
  CHECK(told == 1);
  CHECK(outer.end() == MULTICAST_OK);
  CHECK(outer.end() == MULTICAST_OK);
  s();
  CHECK(told == 1);
}

TEST_CASE("a watch that is moved to itself goes on") {
  mcast::signal<void()> s;
  int told = 0;
  s.add([] {});
  mcast::watch here(s, tell([&] { ++told; }));
  mcast::watch &same = here;
  here = std::move(same);
  s();
  CHECK(told == 1);
  CHECK(here.end() == MULTICAST_OK);
}

TEST_CASE("a signal has one watch, and so has the process") {
  mcast::signal<void()> s;
  int first = 0, second = 0;
  s.add([] {});
  mcast::watch here(s, tell([&] { ++first; }));
  CHECK(failure([&] { const mcast::watch other(s, tell([&] { ++second; })); }) ==
        MULTICAST_ERROR_STATE);
  s();
  CHECK(first == 1);
  CHECK(second == 0);
  here = mcast::watch();
  here = mcast::watch(s, tell([&] { ++second; }));
  s();
  CHECK(first == 1);
  CHECK(second == 1);
  const mcast::watch all(tell([] {}));
  CHECK(failure([] { const mcast::watch other{mcast::watch_options()}; }) ==
        MULTICAST_ERROR_STATE);
}

// ---- The end of a watch ---------------------------------------------------------------------

TEST_CASE("the end of a watch waits for its functions and destroys them") {
  mcast::signal<void()> s;
  gate entered;
  std::atomic<bool> is_over{false};
  const auto kept = std::make_shared<int>(0);
  s.add([] {});
  std::optional<mcast::watch> here;
  here.emplace(s, tell([&entered, &is_over, kept] {
    entered.open();
    std::this_thread::sleep_for(50ms);
    is_over = true;
  }));
  std::thread invoker([&] { s(); });
  entered.wait();
  here.reset();
  CHECK(is_over);
  CHECK(kept.use_count() == 1);
  invoker.join();
}

TEST_CASE("a watch may end in one of its functions") {
  mcast::signal<void()> s;
  int told = 0;
  const auto kept = std::make_shared<int>(0);
  mcast::watch here;
  multicast_status status = MULTICAST_OK;
  s.add([] {});
  s.add([] {});
  here = mcast::watch(s, tell([&, kept] {
    status = here.end();
    ++told;
    CHECK(kept.use_count() == 2);  // because this function is not destroyed yet
  }));
  s();
  CHECK(status == MULTICAST_PENDING);
  CHECK(told == 1);
  CHECK(kept.use_count() == 1);
}

TEST_CASE("what a watch has not told at its end the next one tells not") {
  const handled exceptions;
  mcast::signal<void()> s;
  int slow = 0, called = 0;
  std::optional<mcast::watch> here;
  s.add([] { pass_a_moment(); });
  const auto count = [&](auto...) { ++called; };
  mcast::watch_options first, next;
  first.slow_after = 1ns;
  first.called = count;
  SUBCASE("if that has the function") { next.called = count; }
  SUBCASE("if that has no function") {}
  first.slow = [&](mcast::registration, const char *, nanoseconds) {
    ++slow;
    here.reset();
    here.emplace(s, next);
  };
  here.emplace(s, first);
  s();
  CHECK(slow == 1);
  CHECK(called == 0);
  CHECK(handled::count() == 0);
  s();
  CHECK(called == (next.called ? 1 : 0));
}

TEST_CASE("a signal and then its watch may end in a call") {
  int told = 0;
  const auto kept = std::make_shared<int>(0);
  auto s = std::make_unique<mcast::signal<void()>>();
  mcast::watch here(*s, tell([&told, kept] { ++told; }));
  s->add([&] {
    s.reset();
    CHECK(here.end() == MULTICAST_ERROR_INVALID_HANDLE);
    CHECK(kept.use_count() == 1);
  });
  (*s)();
  CHECK(told == 0);
}

TEST_CASE("what a function throws goes to the handler") {
  const handled exceptions;
  mcast::signal<void()> s;
  int calls = 0;
  s.add([&] { ++calls; });
  s.add([&] { ++calls; });
  mcast::watch_options how = tell([] { throw std::runtime_error("called"); });
  how.slow_after = 1ns;
  how.slow = [](mcast::registration, const char *, nanoseconds) {
    throw std::runtime_error("slow");
  };
  const mcast::watch here(s, how);
  s.add([] { pass_a_moment(); });
  s();
  CHECK(calls == 2);
  CHECK(handled::count() >= 4);
}

TEST_CASE("watches come and go while threads invoke") {
  mcast::signal<void(int)> s;
  std::atomic<bool> is_over{false};
  std::atomic<int> told{0}, late{0};
  s.add([](int) {});
  const auto invoke = [&] {
    while (!is_over) s(1);
  };
  std::thread a(invoke), b(invoke);
  for (int i = 0; i < 100; ++i) {
    std::atomic<bool> is_there{true};
    mcast::watch here(s, tell([&] {
      ++told;
      if (!is_there) ++late;
    }));
    const int before = told;
    while (told == before) std::this_thread::yield();
    CHECK(here.end() == MULTICAST_OK);
    is_there = false;
  }
  is_over = true;
  a.join();
  b.join();
  CHECK(late == 0);
}

// ---- Statistics -----------------------------------------------------------------------------

TEST_CASE("calls are counted while they are watched") {
  mcast::signal<void(int)> s;
  mcast::queue q(1);
  const mcast::registration direct = s.add([](int n) {
    if (n > 0) pass_a_moment();
  });
  const mcast::registration queued = s.add([](int) {}, mcast::on(q));
  s(1);
  q.run();
  CHECK(direct.statistics().calls == 0);
  {
    const mcast::watch here(s);
    s(1);
    s(1);
    s(0);
    q.run();
  }
  s(1);
  const mcast::call_statistics of_direct = direct.statistics(), of_queued = queued.statistics();
  CHECK(of_direct.calls == 3);
  CHECK(of_direct.longest >= 1ms);
  CHECK(of_direct.total >= of_direct.longest + 1ms);
  CHECK(of_direct.queued == 0);
  CHECK(of_direct.dropped == 0);
  CHECK(of_queued.calls == 1);
  CHECK(of_queued.queued == 1);
  CHECK(of_queued.dropped == 2);
  direct.remove();
  CHECK(failure([&] { direct.statistics(); }) == MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(failure([] { mcast::registration().statistics(); }) == MULTICAST_ERROR_INVALID_HANDLE);
}

#if defined(__cpp_designated_initializers)
TEST_CASE("watches and policies in braces") {
  mcast::signal<void(int)> s{{.label = "door", .replay = 1}};
  int told = 0, sum = 0;
  const mcast::watch here(s, {.slow_after = 1h, .called = [&](auto...) { ++told; }});
  const mcast::watch all({.slow_after = 1h});
  s(7);
  s.add([&](int n) { sum += n; }, {.no_replay = true});
  s.add([&](int n) { sum += 10 * n; });
  CHECK(sum == 70);
  CHECK(told == 1);
}
#endif

}  // namespace watch_tests
