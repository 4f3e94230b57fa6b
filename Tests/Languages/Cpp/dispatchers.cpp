// Tests dispatchers, which have one signal for each key.
#include "test.hpp"

#include <multicast/dispatcher.hpp>

namespace dispatchers_tests {

TEST_CASE("a dispatcher calls the delegates of the key") {
  mcast::dispatcher<std::string, void(int)> events;
  mcast::queue loop;
  std::string heard;
  const auto hear = [&](char c) {
    return [&heard, c](int n) { heard += c + std::to_string(n); };
  };
  events.add("a", hear('a'));
  const mcast::registration r = events.add("b", hear('b'), mcast::priority(-1));
  events["b"].add(hear('q'), mcast::on(loop));
  events("a", 1);
  events("b", 2);
  events("c", 3);
  CHECK(heard == "a1b2");
  CHECK(events.invoke("b", 4) == 2);
  CHECK(events.invoke("c", 5) == 0);
  loop.run();
  CHECK(heard == "a1b2b4q2q4");
  CHECK(events.size("b") == 2);
  CHECK(r.remove() == MULTICAST_OK);
  CHECK(events.clear("b") == 1);
  CHECK(events.size("b") == 0);
  CHECK(events.size("c") == 0);
  CHECK(events.clear("c") == 0);
  CHECK(events.find("c") == nullptr);
  CHECK(events.find("b") == &events["b"]);
}

void function(int) {}

TEST_CASE("a dispatcher removes as a signal does") {
  mcast::dispatcher<int, void(int)> events;
  CHECK_FALSE(events.remove(1, function) == MULTICAST_OK);
  CHECK(events.find(1) == nullptr);
  events.add(1, function);
  CHECK_FALSE(events.remove(2, function) == MULTICAST_OK);
  CHECK(events.remove(1, function) == MULTICAST_OK);
  CHECK(events.size(1) == 0);
}

TEST_CASE("a dispatcher has results") {
  enum class question { sum, none };
  struct hash {
    size_t operator()(question q) const { return static_cast<size_t>(q); }
  };
  mcast::dispatcher<question, int(int, int), hash> answers;
  answers.add(question::sum, [](int a, int b) { return a + b; });
  CHECK(answers(question::sum, 1, 2) == 3);
  CHECK_FALSE(answers(question::none, 1, 2));
  CHECK(answers[question::sum].collect(2, 3) == std::vector<int>{5});
}

TEST_CASE("a dispatcher has many keys, of any hash") {
  struct bad_hash {
    size_t operator()(int n) const { return static_cast<size_t>(n % 3); }
  };
  mcast::dispatcher<int, void()> good;
  mcast::dispatcher<int, void(), bad_hash> bad;
  int sum = 0;
  for (int i = 0; i < 500; ++i) {
    good.add(i << 20, [&sum, i] { sum += i; });
    bad.add(i, [&sum, i] { sum += i; });
  }
  for (int i = 0; i < 500; ++i) {
    sum = 0;
    good(i << 20);
    bad(i);
    REQUIRE(sum == 2 * i);
  }
  good(1);
  bad(500);
  CHECK(sum == 2 * 499);
}

TEST_CASE("a delegate may destroy its dispatcher") {
  auto events = std::make_unique<mcast::dispatcher<int, void(std::string)>>();
  std::string heard;
  events->add(1, [&](const std::string &text) {
    events.reset();
    heard += text;
  });
  events->add(1, [&](const std::string &) { heard += "never"; });
  (*events)(1, "text");
  CHECK(heard == "text");
}

TEST_CASE("threads make the keys of a dispatcher at once") {
  mcast::dispatcher<int, void()> events;
  std::atomic<int> calls{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        events.add(i, [&] { ++calls; });
        events(i);
      }
    });
  }
  for (std::thread &each : threads) each.join();
  CHECK(calls >= 600);
  for (int i = 0; i < 200; ++i) REQUIRE(events.size(i) == 3);
}

TEST_CASE("a dispatcher is moved and swapped, with its signals") {
  using dispatcher = mcast::dispatcher<int, void(int)>;
  int sum = 0;
  dispatcher a, b;
  a.add(1, [&](int number) { sum += number; });
  b.add(1, [&](int number) { sum += 100 * number; });
  b.add(2, [](int) {});
  mcast::signal<void(int)> *const signal = a.find(1);
  std::swap(a, b);
  CHECK(b.find(1) == signal);
  CHECK(a.size(2) == 1);
  b(1, 1);
  a(1, 2);
  CHECK(sum == 201);
  dispatcher c(std::move(b));
  CHECK(b.find(1) == nullptr);
  b.add(1, [](int) {});
  c(1, 1000);
  CHECK(sum == 1201);
  dispatcher *const same = &c;
  c = std::move(*same);
  CHECK(c.find(1) == signal);
  b = std::move(c);
  CHECK(b.find(1) == signal);
  b(1, 10000);
  CHECK(sum == 11201);
}

}  // namespace dispatchers_tests
