// Tests signals whose delegates return results.
#include "test.hpp"

TEST_CASE("results are collected, folded and searched in order") {
  mcast::signal<int(int)> s;
  CHECK_FALSE(s(1).has_value());
  CHECK(s.collect(1).empty());
  s.add([](int n) { return n; }, mcast::priority(-1));
  s.add([](int n) { return 10 * n; });
  s.add([](int n) { return static_cast<short>(100 * n); });
  CHECK(s.collect(2) == std::vector<int>{20, 200, 2});
  CHECK(*s(3) == 3);
  CHECK(s.fold(1, [](int sum, int n) { return sum + n; }, 2) == 223);
  const auto append = [](std::string text, int n) { return text + std::to_string(n) + ' '; };
  CHECK(s.fold(std::string(), append, 1) == "10 100 1 ");
}

TEST_CASE("what stops early leaves the others uncalled") {
  mcast::signal<bool()> s;
  int calls = 0;
  for (const bool answer : {false, true, false}) {
    s.add([&calls, answer] {
      ++calls;
      return answer;
    });
  }
  CHECK(s.any());
  CHECK(std::exchange(calls, 0) == 2);
  CHECK_FALSE(s.all());
  CHECK(std::exchange(calls, 0) == 1);
  CHECK(*s.first_of());
  CHECK(std::exchange(calls, 0) == 2);
  CHECK(s.each([](bool answer) { return !answer; }) == 2);
  CHECK(std::exchange(calls, 0) == 2);
  CHECK(s.each([](bool) {}) == 3);
  calls = 0;
  const auto two = [](int &sum, bool) {
    return ++sum < 2 ? mcast::step::go_on : mcast::step::stop;
  };
  CHECK(s.fold(0, two) == 2);
  CHECK(calls == 2);
  s.clear();
  CHECK(s.all());
  CHECK_FALSE(s.any());
}

TEST_CASE("a result is there before the next delegate is called") {
  mcast::signal<int()> s;
  std::string text;
  for (int i = 0; i < 2; ++i) {
    s.add([&text, i] {
      text += 'c';
      return i;
    });
  }
  s.each([&](int) { text += 'r'; });
  CHECK(text == "crcr");
}

TEST_CASE("results may be references, optionals, and movable only") {
  int a = 1, b = 2;
  mcast::signal<int &()> references;
  references.add([&]() -> int & { return a; });
  references.add([&]() -> int & { return b; });
  CHECK(&references()->get() == &b);
  references.collect().at(0).get() = 7;
  CHECK(a == 7);

  mcast::signal<std::optional<std::string>(int)> handlers;
  handlers.add([](int) { return std::nullopt; });
  handlers.add([](int n) { return std::optional<std::string>(std::to_string(n)); });
  CHECK(handlers.first_of(5)->value() == "5");

  mcast::signal<std::unique_ptr<int>()> owners;
  owners.add([] { return std::make_unique<int>(4); });
  CHECK(*owners.collect().at(0) == 4);
  CHECK(**owners() == 4);

  mcast::signal<std::vector<int>()> lists;  // not a condition: takes the first result
  lists.add([] { return std::vector<int>{1}; });
  CHECK(lists.first_of()->size() == 1);
}

TEST_CASE("all are called before an exception of one is rethrown") {
  mcast::signal<bool()> s;
  int calls = 0;
  const auto good = [&calls] {
    ++calls;
    return true;
  };
  s.add(good);
  s.add([]() -> bool { throw std::runtime_error("first"); });
  s.add(good);
  s.add([]() -> bool { throw std::logic_error("second"); });
  CHECK_THROWS_AS(s(), std::runtime_error);
  CHECK(std::exchange(calls, 0) == 2);
  CHECK_THROWS_AS(s.collect(), std::runtime_error);
  CHECK(std::exchange(calls, 0) == 2);
  CHECK_THROWS_AS(s.all(), std::runtime_error);
  CHECK(std::exchange(calls, 0) == 1);
  CHECK_THROWS_AS(s.each([](bool) {}), std::runtime_error);
  CHECK(std::exchange(calls, 0) == 1);
  CHECK_THROWS_AS(s.fold(0, [](int sum, bool) { return sum; }), std::runtime_error);
  CHECK(std::exchange(calls, 0) == 1);
  CHECK(s.any());  // stops before the delegate that throws
  calls = 0;
  CHECK_THROWS_AS(s.each([](bool) { throw 3; }), int);
  CHECK(calls == 1);
}

TEST_CASE("a delegate whose object is dead has no result") {
  struct source {
    int number = 5;
    int get() const { return number; }
  };
  mcast::signal<int()> s;
  auto object = std::make_shared<source>();
  s.add(object, &source::get);
  s.add([] { return 1; });
  CHECK(s.collect() == std::vector<int>{5, 1});
  object.reset();
  CHECK(s.collect() == std::vector<int>{1});
}

TEST_CASE("a delegate with a result may destroy the signal") {
  auto s = std::make_unique<mcast::signal<int()>>();
  s->add([&s] {
    s.reset();
    return 3;
  });
  s->add([] { return 4; });
  CHECK(s->collect() == std::vector<int>{3});
}

TEST_CASE("a fold keeps the type of its value") {
  mcast::signal<short()> s;
  for (short n = 1; n <= 3; ++n) s.add([n] { return n; });
  static_assert(std::is_same_v<decltype(s.fold(short{0}, std::plus<>())), short>);
  CHECK(s.fold(short{0}, std::plus<>()) == 6);
}
