// Tests spies, which record the arguments of invocations.
#include "test.hpp"

#include <chrono>
#include <string_view>
#include <tuple>

#include <multicast/spy.hpp>

namespace spies_tests {
using namespace std::chrono_literals;

TEST_CASE("a spy records arguments, order and threads") {
  mcast::signal<void(int, std::string_view, const char *)> s;
  mcast::signal<void()> other;
  mcast::spy seen(s);
  const mcast::spy<mcast::signal<void()>> beside(other);
  CHECK(seen.empty());
  s(1, std::string("one"), std::string("c").c_str());
  other();
  std::thread([&] { s(2, "two", nullptr); }).join();
  const auto calls = seen.calls();
  REQUIRE(calls.size() == 2);
  CHECK(calls[0].arguments == std::tuple<int, std::string, std::string>(1, "one", "c"));
  CHECK(calls[1].arguments == std::tuple<int, std::string, std::string>(2, "two", ""));
  CHECK(calls[0].thread == std::this_thread::get_id());
  CHECK(calls[1].thread != std::this_thread::get_id());
  REQUIRE(beside.size() == 1);
  CHECK(calls[0].order < beside.calls()[0].order);
  CHECK(beside.calls()[0].order < calls[1].order);
}

TEST_CASE("a spy waits for so many calls, or for so long") {
  mcast::signal<void(int)> s;
  mcast::spy seen(s);
  CHECK_FALSE(seen.wait(1, 1ms));
  CHECK(seen.wait(0, 0ms));
  std::thread invoker([&] {
    for (int i = 0; i < 3; ++i) s(i);
  });
  CHECK(seen.wait(3, std::chrono::nanoseconds::max()));
  invoker.join();
  CHECK(seen.wait());
  CHECK_FALSE(seen.wait(4, 1ms));
  CHECK(seen.take().size() == 3);
  CHECK_FALSE(seen.wait(1, 1ms));
  s(3);
  seen.clear();
  CHECK(seen.empty());
}

TEST_CASE("a spy records what a queue delivers") {
  mcast::signal<void(const std::string &)> s;
  mcast::queue loop;
  const mcast::spy seen(s, mcast::on(loop));
  s("later");
  CHECK(seen.empty());
  loop.start();
  CHECK(seen.wait());
  CHECK(seen.calls()[0].thread != std::this_thread::get_id());
  loop.stop();
}

TEST_CASE("a spy ends before and after its signal") {
  mcast::signal<void()> s;
  {
    const mcast::spy seen(s.connectable());
    CHECK(s.size() == 1);
    CHECK(seen.get().is_valid());
  }
  CHECK(s.empty());
  auto short_lived = std::make_unique<mcast::signal<void(int)>>();
  const mcast::spy seen(*short_lived);
  (*short_lived)(5);
  short_lived.reset();
  CHECK(std::get<0>(seen.calls()[0].arguments) == 5);
  CHECK_FALSE(seen.get().is_valid());
}

TEST_CASE("a spy of many threads misses nothing") {
  mcast::signal<void(int)> s;
  const mcast::spy seen(s);
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&s] {
      for (int i = 0; i < 200; ++i) s(i);
    });
  }
  CHECK(seen.wait(600));
  for (std::thread &each : threads) each.join();
  uint64_t last = 0;
  for (const auto &call : seen.calls()) {
    CHECK(call.order > last);
    last = call.order;
  }
}

}  // namespace spies_tests
