// Tests coroutines that wait for the next invocation.
#include "test.hpp"

#if defined(__cpp_impl_coroutine)
#include <chrono>
#include <coroutine>
#include <string_view>
#include <tuple>

#if __has_include(<stop_token>)
#include <stop_token>
#endif

#include <multicast/next.hpp>

namespace coroutines_tests {

// A coroutine that starts immediately and is owned by its caller.
class task {
 public:
  struct promise_type {
    std::exception_ptr thrown;
    task get_return_object() {
      return task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { thrown = std::current_exception(); }
  };

  task(const task &) = delete;
  task &operator=(const task &) = delete;
  ~task() { destroy(); }
  bool is_done() const { return handle_.done(); }
  void destroy() {
    if (handle_) std::exchange(handle_, nullptr).destroy();
  }
  void check() const {
    if (handle_.promise().thrown) std::rethrow_exception(handle_.promise().thrown);
  }

 private:
  explicit task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

// A coroutine that destroys itself when it ends.
struct detached {
  struct promise_type {
    detached get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};

using texts = mcast::signal<void(int, std::string_view)>;

task listen(texts &s, std::string &heard, int times, mcast::options how = {}) {
  for (int i = 0; i < times; ++i) {
    const auto got = co_await mcast::next(s, how);
    if (!got) {
      heard += "end";
      co_return;
    }
    const auto &[number, text] = *got;
    heard += std::to_string(number) + text;
  }
}

TEST_CASE("a coroutine gets the next invocation, and the one after it") {
  texts s;
  std::string heard;
  const task t = listen(s, heard, 2);
  CHECK(s.size() == 1);
  s(1, "a");
  CHECK(s.size() == 1);  // the coroutine waits again, for a later invocation
  CHECK(heard == "1a");
  s(2, std::string("b"));
  CHECK(s.empty());
  CHECK(t.is_done());
  s(3, "c");
  CHECK(heard == "1a2b");
}

TEST_CASE("a coroutine goes on at once if the invocation came before") {
  mcast::signal<void(int)> s;
  int got = 0;
  const auto body = [&]() -> task {
    auto next = mcast::next(s);
    s(5);
    got = std::get<0>(*co_await next);
    CHECK_FALSE(co_await next);
  };
  const task t = body();
  CHECK(t.is_done());
  CHECK(got == 5);
}

TEST_CASE("a coroutine goes on in the queue that it gave, always") {
  mcast::signal<void(int)> s;
  mcast::queue loop;
  std::thread::id where;
  const auto body = [&](bool is_early) -> task {
    auto next = mcast::next(s, mcast::on(loop));
    if (is_early) s(1);
    const auto got = co_await next;
    where = std::this_thread::get_id();
    CHECK(got == std::tuple<int>(1));
  };
  for (const bool is_early : {false, true}) {
    task t = body(is_early);
    CHECK_FALSE(t.is_done());
    if (!is_early) s(1);
    CHECK_FALSE(t.is_done());
    std::thread([&] {
      CHECK(loop.run() == 1);
      CHECK(where == std::this_thread::get_id());
    }).join();
    CHECK(t.is_done());
    t.check();
    CHECK(loop.run() == 0);
  }
}

TEST_CASE("a waiting coroutine goes on if no invocation can come") {
  auto s = std::make_unique<texts>();
  mcast::queue loop;
  mcast::lifetime scope;
  std::string heard;
  const auto end_all = [&](const task &t, bool is_queued) {
    SUBCASE("the signal is destroyed") { s.reset(); }
    SUBCASE("the lifetime ends") { scope.end(); }
    SUBCASE("the delegates are removed") { CHECK(s->clear() == 1); }
    CHECK(t.is_done() == !is_queued);
    CHECK(loop.run() == (is_queued ? 1 : 0));
    CHECK(t.is_done());
    CHECK(heard == "end");
  };
  SUBCASE("here") { end_all(listen(*s, heard, 1, mcast::under(scope)), false); }
  SUBCASE("in its queue") {
    end_all(listen(*s, heard, 1, mcast::on(loop) | mcast::under(scope)), true);
  }
}

TEST_CASE("a coroutine whose queue drops the call has no arguments") {
  mcast::signal<void(int)> s;
  auto loop = std::make_unique<mcast::queue>(1u);
  bool is_over = false;
  const auto body = [&]() -> task {
    CHECK_FALSE(co_await mcast::next(s, mcast::on(*loop)));
    is_over = true;
  };
  const task t = body();
  SUBCASE("because it is full") {
    loop->post([] {});
    s(1);
  }
  SUBCASE("because it is cleared") {
    s(1);
    CHECK(loop->clear() == 1);
  }
  SUBCASE("because it is destroyed before") {
    loop.reset();
    s(1);
  }
  SUBCASE("because it is destroyed after") {
    s(1);
    loop.reset();
  }
  CHECK(is_over);
  CHECK(t.is_done());
}

TEST_CASE("a coroutine that waits may be destroyed") {
  texts s;
  mcast::queue loop;
  std::string heard;
  SUBCASE("before the invocation") {
    task t = listen(s, heard, 1);
    t.destroy();
    CHECK(s.empty());
  }
  SUBCASE("before the queue makes its call") {
    task t = listen(s, heard, 1, mcast::on(loop));
    s(1, "a");
    t.destroy();
    CHECK(loop.run() == 1);
  }
  SUBCASE("by another delegate of the same invocation") {
    task t = listen(s, heard, 1);
    s.add([&](int, std::string_view) { t.destroy(); }, mcast::at_front);
    s(1, "a");
  }
  SUBCASE("and the queue before it") {
    auto gone = std::make_unique<mcast::queue>();
    task t = listen(s, heard, 1, mcast::on(*gone));
    gone.reset();
    t.destroy();
  }
  CHECK(heard == "");
}

TEST_CASE("a coroutine may destroy its signal, and itself") {
  auto s = std::make_unique<mcast::signal<void(int)>>();
  int sum = 0;
  const auto body = [&]() -> detached {
    sum += std::get<0>(*co_await mcast::next(*s));
    s.reset();
  };
  body();
  s->add([&](int n) { sum += n; });  // not called, because the signal is destroyed first
  (*s)(1);
  CHECK(sum == 1);
  CHECK(s == nullptr);
}

TEST_CASE("a coroutine gets what a copy throws") {
  struct fragile {
    fragile() = default;
    fragile(const fragile &) { throw std::runtime_error("copy"); }
  };
  mcast::signal<void(const fragile &)> s;
  const auto body = [&]() -> task { static_cast<void>(co_await mcast::next(s)); };
  const task t = body();
  s(fragile());
  CHECK(t.is_done());
  CHECK_THROWS_WITH(t.check(), "copy");
}

// A coroutine whose exceptions propagate out of resume(). An exception ends the coroutine.
class open_task {
 public:
  struct promise_type {
    open_task get_return_object() {
      return open_task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { throw; }
  };

  open_task(const open_task &) = delete;
  open_task &operator=(const open_task &) = delete;
  ~open_task() { handle_.destroy(); }

 private:
  explicit open_task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  std::coroutine_handle<promise_type> handle_;
};

TEST_CASE("what leaves a coroutine reaches the invoker, or the handler") {
  auto s = std::make_unique<mcast::signal<void()>>();
  mcast::queue loop;
  const auto body = [&](mcast::options how) -> open_task {
    static_cast<void>(co_await mcast::next(*s, how));
    throw std::runtime_error("coroutine");
  };
  const handled exceptions;
  const open_task direct = body({});
  CHECK_THROWS_WITH((*s)(), "coroutine");
  CHECK(handled::count() == 0);
  const open_task queued = body(mcast::on(loop));
  (*s)();
  CHECK(loop.run() == 1);
  CHECK(handled::count() == 1);
  const open_task in_vain = body({});
  s.reset();
  CHECK(handled::count() == 2);
}

TEST_CASE("coroutines on a queue, and threads that invoke") {
  mcast::signal<void(int)> s;
  mcast::queue loop(1u << 14);
  std::atomic<int> got{0}, ended{0};
  mcast::lifetime scope;
  const auto body = [&]() -> detached {
    while (co_await mcast::next(s, mcast::on(loop) | mcast::under(scope))) {
      ++got;
      if (got >= 500) break;
    }
    ++ended;
  };
  for (int i = 0; i < 4; ++i) body();
  loop.start();
  std::atomic<bool> is_over{false};
  std::vector<std::thread> invokers;
  for (int t = 0; t < 2; ++t) {
    invokers.emplace_back([&] {
      while (!is_over) s(1);
    });
  }
  while (ended < 4) std::this_thread::yield();
  is_over = true;
  for (std::thread &each : invokers) each.join();
  loop.stop();
  CHECK(s.empty());
  CHECK(got >= 500);
}

TEST_CASE("a wait of a coroutine is cancelled while threads invoke") {
  for (int round = 0; round < 300; ++round) {
    mcast::signal<void(int)> s;
    std::atomic<int> ended{0};
    mcast::registration r;
    const auto body = [&]() -> detached {
      auto next = mcast::next(s);
      r = next.get();
      const auto got = co_await next;
      CHECK((!got || std::get<0>(*got) == 7));
      ++ended;
    };
    body();
    std::thread invoker([&] { s(7); });
    r.remove_nowait();
    invoker.join();
    CHECK(ended == 1);
    CHECK(s.empty());
  }
}

#if defined(__cpp_lib_jthread)
TEST_CASE("a stop token cancels the wait of a coroutine") {
  mcast::signal<void(int)> s;
  std::stop_source source;
  bool is_cancelled = false;
  const auto body = [&](std::stop_token token) -> detached {
    auto next = mcast::next(s);
    const std::stop_callback cancel(token, [r = next.get()] { r.remove_nowait(); });
    is_cancelled = !co_await next;
  };
  SUBCASE("later") {
    body(source.get_token());
    CHECK_FALSE(is_cancelled);
    source.request_stop();
  }
  SUBCASE("before it begins") {
    source.request_stop();
    body(source.get_token());
  }
  CHECK(is_cancelled);
  CHECK(s.empty());
}
#endif

}  // namespace coroutines_tests
#endif
