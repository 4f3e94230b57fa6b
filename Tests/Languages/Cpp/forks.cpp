// Tests fork(): the child must be able to use the header's per-process data immediately.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "test.hpp"

#include <multicast/groups.hpp>
#include <multicast/next.hpp>
#include <multicast/watch.hpp>

namespace fork_tests {

struct listener {
  std::atomic<int> calls{0};
  void hear(int) { ++calls; }
};

// A signal that several threads use, and the operations that they perform.
struct used {
  mcast::signal<void(int)> s, paused;  // the pauses of all threads still exist in the child
  mcast::groups<int> groups;
  listener object;
  std::atomic<int> told{0};
  mcast::watch_options how;

  used() {
    how.called = [this](auto...) { ++told; };
  }
  // Performs the operations. Returns whether all checks succeed.
  bool use() {
    const mcast::registration r = s.add(object, &listener::hear);
    const mcast::registration grouped = s.add([](int) {}, groups.in(1));
    { const mcast::scoped_pause pause(paused); }
    paused(1);
    s(1);
    const bool are_removed = grouped.remove() == MULTICAST_OK && r.remove() == MULTICAST_OK;
    groups.count(1);
    return are_removed;
  }
  // Performs operations whose results are predictable only in the child, which has no other thread.
  bool use_alone() {
    const int before = told;
    mcast::signal<void()> mine;
    mcast::queue q;
    mine.add([] { throw std::runtime_error("child"); }, mcast::on(q));
    s.add([](int) {});
    s(1);
    const mcast::watch here(mine, how);
    return use() && told > before &&
           mine.invoke_and_wait_for(std::chrono::milliseconds(1)).unfinished == 1;
  }
};

// Returns the status of waitpid(). The parent measures the time, because the child may hang before
// its fork() returns. An alarm after thirty seconds ends such a child.
int end_of_child(pid_t child) {
  int status = 0;
  for (int waited_ms = 0; waitpid(child, &status, WNOHANG) != child; ++waited_ms) {
    if (waited_ms == 30000) kill(child, SIGALRM);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return status;
}

// ThreadSanitizer does not protect the locks of its clocks across a fork. If a thread of the parent
// holds such a lock during the fork, the child waits for it forever. A second or a third child must
// then succeed.
#ifdef __SANITIZE_THREAD__
constexpr int forks_that_may_hang = 2;
#else
constexpr int forks_that_may_hang = 0;
#endif

// Runs a body in a child process, and returns whether the body has returned true.
template <typename Body>
bool succeeds_in_child(Body &&body) {
  int status = SIGALRM;
  for (int hung = 0; status == SIGALRM && hung <= forks_that_may_hang; ++hung) {
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) _exit(body() ? 0 : 1);
    status = end_of_child(child);
  }
  return status == 0;
}

TEST_CASE("the child of a fork can use what other threads were using") {
  used all;
  const mcast::watch here(all.s, all.how);
  std::atomic<bool> is_over{false};
  std::atomic<int> mistakes{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!is_over) {
        if (!all.use()) ++mistakes;
      }
    });
  }
  bool is_right = true;
  for (int i = 0; i < 200 && is_right; ++i) {
    is_right = succeeds_in_child([&] { return all.use_alone(); });
  }
  is_over = true;
  for (std::thread &thread : threads) thread.join();
  CHECK(is_right);
  CHECK(mistakes == 0);
}

TEST_CASE("an observer that was being added ends in the child of a fork") {
  // The gates are not members of the observer, because the child destroys the observer. A thread of
  // the parent is waiting for a gate during the fork, and a gate must not be destroyed while a
  // thread is waiting.
  struct gates {
    gate entered, let_go;
  } both;
  struct sleeper : mcast::observer {
    explicit sleeper(gates &all) : all_(&all) {}
    void hear(int) {
      all_->entered.open();
      all_->let_go.wait();
    }
    gates *all_;
  };
  struct plain : mcast::observer {
    void hear(int) {}
  };
  mcast::policies how;
  how.replay = 1;
  mcast::signal<void(int)> s(how), other;
  s(1);
  auto w = std::make_unique<sleeper>(both);
  std::thread adds([&] { s.add<&sleeper::hear>(*w); });
  both.entered.wait();
  CHECK(succeeds_in_child([&] {
    const size_t before = w->count();
    w.reset();
    std::vector<plain> all(100);  // at various addresses
    for (plain &each : all) other.add<&plain::hear>(each);
    const size_t between = other.size();
    all.clear();
    return before == 1 && s.empty() && between == 100 && other.empty();
  }));
  CHECK(w->count() == 1);
  both.let_go.open();
  adds.join();
  w.reset();
  CHECK(s.empty());
}

// Another thread of the parent holds a lock most of the time. The child must still be able to take
// this lock.
TEST_CASE("no lock of the process is held in the child of a fork") {
  using mcast::detail::guarded;
  const guarded each[] = {guarded::groups,  guarded::members,  guarded::pauses,
                          guarded::watches, guarded::failures, guarded::keyed};
  for (const guarded what : each) {
    CAPTURE(static_cast<size_t>(what));
    std::atomic<bool> is_over{false};
    gate entered;
    std::thread holder([&] {
      for (bool is_first = true; !is_over; is_first = false) {
        const mcast::detail::process_lock lock(what);
        if (is_first) entered.open();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    entered.wait();
    const bool is_right = succeeds_in_child([&] {
      const mcast::detail::process_lock lock(what);
      return true;
    });
    is_over = true;
    holder.join();
    CHECK(is_right);
  }
}

// In the child, the delegate is released before fork() returns, while all locks are held.
TEST_CASE("a delegate removed in its call is released in the child") {
  struct releasing {
    gate *entered, *let_go;
    std::shared_ptr<int> kept;
    releasing(gate &e, gate &l, std::shared_ptr<int> k)
        : entered(&e), let_go(&l), kept(std::move(k)) {}
    void hear(int) const {
      entered->open();
      let_go->wait();
    }
  };
  gate entered, let_go;
  const auto kept = std::make_shared<int>(0);
  mcast::signal<void(int)> s;
  listener object;
  const mcast::registration r =
      s.add(object, [at = releasing(entered, let_go, kept)](int n) { at.hear(n); });
  CHECK(kept.use_count() == 2);
  std::thread invoker([&] { s(1); });
  entered.wait();
  CHECK(r.remove_nowait() == MULTICAST_PENDING);
  CHECK(succeeds_in_child([&] { return kept.use_count() == 1; }));
  CHECK(kept.use_count() == 2);
  let_go.open();
  invoker.join();
}

#if defined(__cpp_impl_coroutine)
struct detached {
  struct promise_type {
    detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

// Another thread is calling the coroutine's delegate during fork(). The child releases the
// delegate, which must not resume the coroutine.
TEST_CASE("no coroutine goes on inside fork") {
  struct slow {
    gate *entered, *let_go;
    slow(gate *e, gate *l) : entered(e), let_go(l) {}
    slow(const slow &other) : entered(other.entered), let_go(other.let_go) {
      entered->open();
      let_go->wait();
    }
    slow(slow &&) = default;
  };
  gate entered, let_go;
  mcast::signal<void(const slow &)> s;
  bool has_gone_on = false;
  const auto body = [&]() -> detached {
    CHECK(co_await mcast::next(s));
    has_gone_on = true;
  };
  body();
  std::thread invoker([&] { s(slow(&entered, &let_go)); });
  entered.wait();
  CHECK(succeeds_in_child([&] { return !has_gone_on && s.empty(); }));
  let_go.open();
  invoker.join();
  CHECK(has_gone_on);
}
#endif

}  // namespace fork_tests
