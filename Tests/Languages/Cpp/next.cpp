// Tests threads that wait for the next invocation.
#include "test.hpp"

#include <chrono>
#include <string_view>
#include <tuple>

#include <multicast/next.hpp>

namespace next_tests {
using namespace std::chrono_literals;

TEST_CASE("next() misses nothing that is invoked after it") {
  mcast::signal<void(int, std::string_view)> s;
  s(1, "before");
  auto next = mcast::next(s);
  CHECK(s.size() == 1);
  CHECK_FALSE(next.is_over());
  CHECK_FALSE(next.wait_for(0ns));
  CHECK(next.get().is_valid());
  s(2, std::string("two"));
  CHECK(s.empty());
  CHECK(next.is_over());
  s(3, "after");
  const auto got = next.wait();
  CHECK(got == std::tuple<int, std::string>(2, "two"));
  CHECK_FALSE(next.wait());
}

TEST_CASE("next() waits for another thread") {
  mcast::signal<void(int)> s;
  auto next = mcast::next(s.connectable());
  std::thread invoker([&] { s(7); });
  const auto got = next.wait();
  CHECK(got == std::tuple<int>(7));
  invoker.join();
}

TEST_CASE("next() with a timeout returns with or without") {
  mcast::signal<void()> s;
  CHECK_FALSE(mcast::next(s, 1ms));
  CHECK_FALSE(mcast::next(s.connectable(), 1ms));
  CHECK(s.empty());
  std::atomic<bool> is_over{false};
  std::thread invoker([&] {
    while (!is_over) s();
  });
  CHECK(mcast::next(s, 60s));
  is_over = true;
  invoker.join();
  CHECK(s.empty());
}

TEST_CASE("next() is over when it can never come") {
  auto s = std::make_unique<mcast::signal<void(int)>>();
  auto next = mcast::next(*s);
  SUBCASE("the signal is destroyed") { s.reset(); }
  SUBCASE("the signal is assigned") { *s = mcast::signal<void(int)>(); }
  SUBCASE("all delegates are removed") { CHECK(s->clear() == 1); }
  SUBCASE("the registration is removed") { CHECK(next.get().remove_nowait() == MULTICAST_OK); }
  SUBCASE("another thread removes it") {
    std::thread([r = next.get()] { CHECK(r.remove() == MULTICAST_OK); }).join();
  }
  CHECK(next.is_over());
  CHECK_FALSE(next.wait());
  CHECK_FALSE(next.get().is_valid());
}

TEST_CASE("next() ends with a lifetime, which wakes the waiter") {
  mcast::signal<void(int)> s;
  mcast::lifetime window;
  auto next = mcast::next(s, mcast::under(window));
  std::thread ender([&] { window.end(); });
  CHECK_FALSE(next.wait());
  ender.join();
  CHECK(s.empty());
  CHECK(failure([&] { static_cast<void>(mcast::next(s, mcast::under(window))); }) ==
        MULTICAST_ERROR_INVALID_HANDLE);
}

TEST_CASE("next() may be moved, and outlive its signal") {
  mcast::signal<void(int)> s;
  auto a = mcast::next(s), b = mcast::next(s);
  auto c = std::move(a);
  CHECK(s.size() == 2);
  CHECK(a.is_over());  // NOLINT(bugprone-use-after-move,clang-analyzer-cplusplus.Move)
  CHECK_FALSE(a.wait());
  b = std::move(c);
  CHECK(s.size() == 1);
  s(4);
  { const mcast::signal<void(int)> gone = std::move(s); }
  CHECK(b.wait() == std::tuple<int>(4));
}

TEST_CASE("next() passes on what a copy throws") {
  struct fragile {
    fragile() = default;
    fragile(const fragile &) { throw std::runtime_error("copy"); }
  };
  mcast::signal<void(const fragile &)> s;
  auto next = mcast::next(s);
  s(fragile());
  CHECK(s.empty());
  CHECK_THROWS_WITH(next.wait(), "copy");
  CHECK_FALSE(next.wait());
}

TEST_CASE("next() gets no replay") {
  mcast::signal<void(int)> s{mcast::replay(2)};
  s(1);
  auto next = mcast::next(s);
  CHECK_FALSE(next.is_over());
  s(2);
  CHECK(next.wait() == std::tuple<int>(2));
}

TEST_CASE("next() of one invocation, of two that race") {
  mcast::signal<void(int)> s;
  for (int round = 0; round < 200; ++round) {
    auto next = mcast::next(s);
    std::thread a([&] { s(1); }), b([&] { s(2); });
    const auto got = next.wait();
    REQUIRE(got);
    CHECK((std::get<0>(*got) == 1 || std::get<0>(*got) == 2));
    a.join();
    b.join();
    CHECK(s.empty());
  }
}

TEST_CASE("next() of a signal that dies while it is invoked") {
  for (int round = 0; round < 200; ++round) {
    auto s = std::make_unique<mcast::signal<void(std::string)>>();
    auto next = mcast::next(*s);
    std::thread ender([r = next.get()] { r.remove_nowait(); });
    (*s)("text");
    const auto got = next.wait();
    CHECK((!got || std::get<0>(*got) == "text"));
    ender.join();
    s.reset();
  }
}

}  // namespace next_tests
