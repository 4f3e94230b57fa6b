// Tests signals that are delegates of other signals.
#include "test.hpp"

#include <functional>

namespace chains_tests {

TEST_CASE("a signal invokes another one until that is destroyed") {
  mcast::signal<void(int)> a;
  std::vector<int> heard;
  mcast::registration r;
  {
    mcast::signal<void(int)> b;
    r = a.add(b);
    b.add([&](int n) { heard.push_back(n); });
    a(1);
    CHECK(r.is_valid());
    CHECK(a.size() == 1);
  }
  SUBCASE("as size() tells") { CHECK(a.empty()); }
  SUBCASE("as is_valid() tells") { CHECK_FALSE(r.is_valid()); }
  SUBCASE("as the invocation tells") { CHECK(a.invoke(2) == 0); }
  a(3);
  CHECK(heard == std::vector<int>{1});
  CHECK_FALSE(r.is_valid());
}

TEST_CASE("a signal invokes another one by std::ref, moved or not") {
  mcast::signal<void(std::string, int)> a;
  auto b = std::make_unique<mcast::signal<void(const std::string &)>>();
  mcast::signal<void()> c;
  std::string heard;
  a.add(std::ref(*b));
  a.add(std::cref(c));
  b->add([&](const std::string &text) { heard += text; });
  c.add([&] { heard += 'c'; });
  a("b", 1);
  CHECK(heard == "bc");
  mcast::signal<void(const std::string &)> moved = std::move(*b);
  b.reset();
  a("m", 1);
  CHECK(heard == "bcmc");
  CHECK(a.remove(moved).count() == 1);
  CHECK(a.remove(std::ref(c)).count() == 1);
  CHECK_FALSE(a.remove(c));
  CHECK(a.empty());
  CHECK(moved.size() == 1);
}

TEST_CASE("a signal that was moved in belongs to the other one") {
  mcast::signal<void(int)> a, b;
  int sum = 0;
  b.add([&](int n) { sum += n; });
  a.add(std::move(b));
  a(2);
  CHECK(sum == 2);
}

TEST_CASE("the results of another signal are passed on") {
  mcast::signal<long(int)> a;
  mcast::signal<int(int)> b, none;
  a.add(b);
  a.add(none);
  b.add([](int n) { return n; });
  b.add([](int n) { return 10 * n; });
  CHECK(a.collect(2) == std::vector<long>{20});
  int place = 0;
  mcast::signal<int &()> c, d;
  c.add(d);
  d.add([&]() -> int & { return place; });
  CHECK(&c()->get() == &place);
  mcast::signal<void(int)> e;
  e.add(b);
  CHECK(e.invoke(1) == 1);
}

TEST_CASE("an exception of another signal comes once all were called") {
  mcast::signal<void()> a, b;
  int calls = 0;
  a.add(b);
  a.add([&] { ++calls; });
  b.add([] { throw std::runtime_error("b"); });
  b.add([&] { ++calls; });
  CHECK_THROWS_WITH(a(), "b");
  CHECK(calls == 2);
}

TEST_CASE("options of a signal that is added to another one") {
  mcast::signal<void(int)> a, b;
  mcast::queue q;
  int sum = 0;
  b.add([&](int n) { sum += n; });
  a.add(b, mcast::on(q));
  a.add(b, mcast::unique | mcast::on(q));
  CHECK(a.size() == 1);
  a(1);
  CHECK(sum == 0);
  CHECK(q.run() == 1);
  CHECK(sum == 1);
  {
    const mcast::scoped_pause pause(b);
    a(2);
    q.run();
  }
  CHECK(sum == 1);
  CHECK(a.remove(b));
  a.add(b, mcast::once);
  a(3);
  a(4);
  CHECK(sum == 4);
}

TEST_CASE("another signal is destroyed while threads invoke it") {
  mcast::signal<void(int)> a;
  std::atomic<bool> is_over{false};
  std::atomic<int> calls{0};
  std::thread invoker([&] {
    while (!is_over) a(1);
  });
  for (int i = 0; i < 500; ++i) {
    mcast::signal<void(int)> b;
    b.add([&](int n) { calls += n; });
    a.add(b);
    a.add(b);
    while (i % 100 == 0 && calls == 0) std::this_thread::yield();
  }
  is_over = true;
  invoker.join();
  CHECK(a.empty());
  CHECK(calls > 0);
}

}  // namespace chains_tests
