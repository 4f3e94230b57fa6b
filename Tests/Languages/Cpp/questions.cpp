// Tests functions that query a signal's delegates, delegates that are removed after a number of
// calls, and combiners of signals without results.
#include "test.hpp"

namespace questions_tests {

void f() {}
void g() {}
struct object {
  void hear() {}
  void tell() {}
};

TEST_CASE("a signal knows which delegates it contains") {
  mcast::signal<void()> s, other;
  mcast::queue q;
  object x, y;
  const auto shared = std::make_shared<object>();
  const auto small = [] {};
  CHECK_FALSE(s.contains(f));
  s.add(f);
  s.add(small, mcast::on(q));
  s.add(x, &object::hear);
  s.add(shared, g);
  s.add_extended(y, [](mcast::registration) {});
  s.add(other);
  CHECK(s.contains(f));
  CHECK(s.contains(small));
  CHECK_FALSE(s.contains(g));
  CHECK(s.contains(x, &object::hear));
  CHECK(s.contains(&x, &object::hear));
  CHECK_FALSE(s.contains(x, &object::tell));
  CHECK_FALSE(s.contains(y, &object::hear));
  CHECK(s.contains(shared, g));
  CHECK_FALSE(s.contains(shared, f));
  CHECK(s.contains(other));
  CHECK_FALSE(s.contains(s));
  s.remove(f);
  CHECK_FALSE(s.contains(f));
}

TEST_CASE("a registration knows the signal to which it belongs") {
  mcast::signal<void()> s, other;
  const mcast::registration r = s.add(f);
  CHECK(r.belongs_to(s));
  CHECK_FALSE(r.belongs_to(other));
  other.add(f);
  CHECK_FALSE(r.belongs_to(other));
  const mcast::signal<void()> moved = std::move(s);
  CHECK(r.belongs_to(moved));
  CHECK_FALSE(mcast::registration().belongs_to(moved));
  static_cast<void>(r.remove());
  CHECK_FALSE(r.belongs_to(moved));
}

TEST_CASE("a delegate is called so many times") {
  mcast::signal<void(int)> s;
  std::vector<int> heard;
  s.add(mcast::times(3, [&](int n) { heard.push_back(n); }));
  s.add(mcast::times(1, [&] { heard.push_back(-1); }));
  s.add(mcast::times(0, [&] { heard.push_back(-2); }));
  for (int i = 0; i < 5; ++i) s(i);
  CHECK(heard == std::vector<int>{0, -1, 1, 2});
  CHECK(s.empty());
}

TEST_CASE("times() with a queue, with results, and with objects") {
  mcast::signal<void()> s;
  mcast::queue q;
  int calls = 0;
  s.add(mcast::times(2, [&] { ++calls; }), mcast::on(q));
  for (int i = 0; i < 4; ++i) s();
  q.run();
  CHECK(calls == 2);
  CHECK(s.empty());
  mcast::signal<int()> asked;
  asked.add(mcast::times(2, [] { return 1; }));
  CHECK(asked().has_value());
  CHECK(asked().has_value());
  CHECK_FALSE(asked().has_value());
  auto alive = std::make_shared<int>(0);
  s.add(mcast::times(2, mcast::tracked([&] { ++calls; }, alive)));
  s();
  alive.reset();
  CHECK(s.empty());
  s.add_extended(mcast::times(1, [&](mcast::registration r) { calls += r == mcast::current(); }));
  s();
  s();
  CHECK(calls == 4);
}

TEST_CASE("threads call a delegate so many times, all together") {
  mcast::signal<void()> s;
  std::atomic<int> calls{0};
  s.add(mcast::times(1000, [&] { ++calls; }));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) s();
    });
  }
  for (std::thread &each : threads) each.join();
  CHECK(calls == 1000);
  CHECK(s.empty());
}

// A combiner that is written like a combiner for Boost.Signals2.
struct count {
  int limit = 1000;
  template <typename Iterator>
  int operator()(Iterator begin, Iterator end) const {
    int n = 0;
    for (; begin != end && n < limit; ++begin) {
      *begin;
      ++n;
    }
    return n;
  }
};

TEST_CASE("a combiner calls the delegates of a signal without results") {
  mcast::signal<void(const std::string &, int)> s;
  std::string heard;
  CHECK(s.combine(count(), "none", 0) == 0);
  s.add([&](const std::string &text) { heard += text; });
  const mcast::registration second = s.add([&] { heard += '2'; });
  s.add([&](const std::string &, int n) { heard += std::to_string(n); }, mcast::once);
  CHECK(s.combine(count(), "a", 3) == 3);
  CHECK(heard == "a23");
  CHECK(s.combine(count{1}, "b", 3) == 1);
  CHECK(heard == "a23b");
  second.pause();
  CHECK(s.combine(count(), std::string("c"), 3) == 1);
  CHECK(heard == "a23bc");
  second.resume();
  s.add([] { throw std::runtime_error("combined"); }, mcast::at_front);
  CHECK_THROWS_WITH(s.combine(count(), "d", 1), "combined");
  CHECK(heard == "a23bc");
}

TEST_CASE("a combiner may remove delegates, and their signal") {
  auto s = std::make_unique<mcast::signal<void(int)>>();
  int calls = 0;
  mcast::registration last;
  s->add([&] {
    ++calls;
    last.remove();
  });
  last = s->add([&] { ++calls; });
  s->add([&] {
    ++calls;
    s.reset();
  });
  s->add([&] { ++calls; });
  CHECK(s->combine(count(), 1) == 2);
  CHECK(calls == 2);
}

TEST_CASE("a combiner is refused if a delegate has a queue") {
  mcast::signal<void()> s;
  mcast::queue q;
  s.add([] {}, mcast::on(q));
  CHECK(failure([&] { s.combine(count()); }) == MULTICAST_ERROR_STATE);
  CHECK(q.run() == 0);
}

}  // namespace questions_tests
