// Tests the arguments of queued calls, which must be copied once and destroyed once.
#include "test.hpp"

#include <map>

TEST_CASE("any copyable arguments go through a queue") {
  mcast::signal<void(std::string, const std::vector<int> &, std::map<int, std::string>)> s;
  mcast::queue q;
  std::string seen;
  s.add([&](const std::string &text, const std::vector<int> &numbers, const auto &map) {
    seen += text + std::to_string(numbers.at(1)) + map.at(7);
  }, mcast::on(q));
  std::vector<int> numbers{1, 2};
  s("text", numbers, {{7, "seven"}});
  numbers.clear();
  CHECK(q.run() == 1);
  CHECK(seen == "text2seven");
}

TEST_CASE("queued arguments end on the thread of the last call") {
  struct witness {
    std::thread::id *destroyed_on;
    explicit witness(std::thread::id *where) : destroyed_on(where) {}
    witness(const witness &) = default;
    witness &operator=(const witness &) = delete;
    ~witness() { *destroyed_on = std::this_thread::get_id(); }
  };
  mcast::signal<void(const witness &)> s;
  mcast::queue q;
  std::thread::id where;
  {
    const witness given(&where);
    s.add([](const witness &) {}, mcast::on(q));
    s.add([](const witness &) {}, mcast::on(q));
    s(given);
  }
  where = std::thread::id();
  std::thread runner([&] { q.run(); });
  const std::thread::id expected = runner.get_id();
  runner.join();
  CHECK((where == expected));
}

TEST_CASE("a call dropped, replaced or cancelled frees its arguments") {
  counted::reset();
  mcast::signal<void(const counted &)> s;
  std::vector<int> got;
  const auto take = [&](const counted &c) { got.push_back(c.number); };
  SUBCASE("latest") {
    mcast::queue q;
    s.add(take, mcast::on(q) | mcast::latest);
    for (int i = 0; i < 5; ++i) s(counted(i));
    CHECK(counted::alive == 1);
    q.run();
    CHECK(got == std::vector<int>{4});
  }
  SUBCASE("the oldest") {
    mcast::queue q(2, mcast::overflow::drop_oldest);
    s.add(take, mcast::on(q));
    for (int i = 0; i < 5; ++i) s(counted(i));
    CHECK(counted::alive == 2);
    q.run();
    CHECK(got == std::vector<int>{3, 4});
  }
  SUBCASE("the newest") {
    mcast::queue q(2);
    s.add(take, mcast::on(q));
    for (int i = 0; i < 5; ++i) CHECK(s.invoke(counted(i)) == (i < 2 ? 1 : 0));
    CHECK(counted::alive == 2);
    q.run();
    CHECK(got == std::vector<int>{0, 1});
  }
  SUBCASE("with room on another thread") {
    mcast::queue q(1, mcast::overflow::block);
    s.add(take, mcast::on(q));
    q.start();
    for (int i = 0; i < 50; ++i) s(counted(i));
    q.post_and_wait([] {});
    CHECK(got.size() == 50);
  }
  SUBCASE("clear") {
    mcast::queue q;
    s.add(take, mcast::on(q));
    s(counted(1));
    CHECK(q.clear() == 1);
  }
  SUBCASE("the end of the queue") {
    mcast::queue q;
    s.add(take, mcast::on(q));
    s(counted(1));
  }
  SUBCASE("removal") {
    mcast::queue q;
    const mcast::registration r = s.add(take, mcast::on(q));
    s(counted(1));
    r.remove();
    CHECK(counted::alive == 0);
  }
  CHECK(counted::alive == 0);
}

TEST_CASE("an invocation makes one copy at most, and none in vain") {
  counted::reset();
  mcast::signal<void(counted, int)> s;
  mcast::queue q, other;
  int sum = 0;
  const auto take = [&](const counted &c, int) { sum += c.number; };
  s.add(take);
  const counted one(1);
  s(one, 0);
  CHECK(counted::copies == 0);
  s.add(take, mcast::on(q));
  s.add(take, mcast::on(other));
  s.add(take, mcast::on(q));
  s.add(take);
  s(one, 0);
  CHECK(counted::copies == 1);
  s(counted(10), 0);
  CHECK(counted::copies == 1);
  CHECK(counted::moves == 1);
  counted given(100);
  s.invoke(std::move(given), 0);
  CHECK(counted::moves == 2);
  q.run();
  other.run();
  CHECK(sum == 1 + 5 * 111);
}

TEST_CASE("what is given away is moved, whatever is beside it") {
  enum class color : short { red };
  struct {
    int small : 3;
    color tint : 2;
    const int fixed : 3;
  } bits{1, color::red, 2};
  mcast::signal<void(counted, short, color, const int *, std::shared_ptr<int>)> s;
  mcast::queue q;
  int sum = 0;
  s.add([&](const counted &a, short n, color, const int *, const std::shared_ptr<int> &b) {
    sum += a.number + n + *b;
  }, mcast::on(q));
  short number = 5;
  const auto kept = std::make_shared<int>(1);
  const auto cost = [&](auto &&call) {
    counted::reset();
    call();
    return std::make_pair(counted::copies.load(), counted::moves.load());
  };
  using costs = std::pair<int, int>;
  const auto one = [] { return counted(1); };
  const auto two = [] { return std::make_unique<int>(2); };
  CHECK(cost([&] { s(one(), 1, color::red, nullptr, two()); }) == costs(0, 1));
  CHECK(cost([&] { s(one(), number, color::red, &sum, two()); }) == costs(0, 1));
  CHECK(cost([&] { s(one(), bits.small, bits.tint, nullptr, two()); }) == costs(0, 1));
  CHECK(cost([&] { s.invoke(one(), bits.fixed, {}, nullptr, two()); }) == costs(0, 1));
  CHECK(cost([&] { s(one(), short{5}, color::red, nullptr, kept); }) == costs(0, 1));
  CHECK(cost([&] { s(one(), 1, color::red, nullptr, kept); }) == costs(1, 0));
  CHECK(cost([&] { s(one(), bits.small, color::red, nullptr, kept); }) == costs(1, 0));
  CHECK(cost([&] { s(one(), number, bits.tint, nullptr, kept); }) == costs(1, 0));
  CHECK(kept.use_count() == 5);
  q.run();
  CHECK(kept.use_count() == 1);
  CHECK(sum == 4 + 8 + 4 + 5 + 7 + 3 + 3 + 7);
  int changed = 1;
  mcast::signal<void(std::string, int &)> direct;
  direct.add([](const std::string &text, int &n) { n += static_cast<int>(text.size()); });
  direct("four", changed);
  direct(std::string("six"), changed);
  CHECK(changed == 8);
}

TEST_CASE("a copy that throws refuses the queued calls") {
  struct stubborn {
    stubborn() = default;
    stubborn(const stubborn &) { throw 5; }
  };
  mcast::signal<void(const stubborn &)> s;
  mcast::queue q;
  int calls = 0;
  s.add([&](const stubborn &) { ++calls; }, mcast::on(q));
  s.add([&](const stubborn &) { ++calls; });
  CHECK_THROWS_AS(s(stubborn()), int);
  CHECK(calls == 1);
  CHECK(q.statistics().refused == 1);
  CHECK(q.run() == 0);
}

TEST_CASE("what is kept is what the delegate gets, at any alignment") {
  struct alignas(64) wide {
    int value;
  };
  mcast::signal<void(const wide &, std::u16string_view, const wchar_t *)> s;
  mcast::queue q;
  int calls = 0;
  s.add([&](const wide &got, std::u16string_view view, const wchar_t *text) {
    CHECK(reinterpret_cast<uintptr_t>(&got) % 64 == 0);
    CHECK(got.value == 3);
    CHECK(view == u"view");
    CHECK(std::wstring(text) == L"text");
    ++calls;
  }, mcast::on(q));
  std::wstring text = L"text";
  s(wide{3}, std::u16string(u"view"), text.c_str());
  text = L"gone";
  q.run();
  CHECK(calls == 1);
}

TEST_CASE("queued and direct calls on threads share what they get") {
  mcast::signal<void(const std::string &)> s;
  mcast::queue first, second;
  std::atomic<int> right{0};
  const auto check = [&](const std::string &text) {
    if (text == "a text that is too long for a small string") ++right;
  };
  s.add(check, mcast::on(first));
  s.add(check, mcast::on(second));
  s.add(check);
  first.start();
  second.start();
  const auto invoke = [&] {
    for (int i = 0; i < 200; ++i) s(std::string("a text that is too long for a small string"));
  };
  std::thread a(invoke), b(invoke);
  a.join();
  b.join();
  first.post_and_wait([] {});
  second.post_and_wait([] {});
  CHECK(right == 1200);
}

struct declared {
  std::string text;
};
void invoke_declared(const mcast::signal<void(const declared &)> &s, const declared &argument);

TEST_CASE("a signal may be invoked where its argument is only declared") {
  mcast::signal<void(const declared &)> s;
  mcast::queue q;
  std::string text;
  s.add([&](const declared &argument) { text += argument.text; });
  invoke_declared(s, {"direct "});
  s.add([&](const declared &argument) { text += argument.text; }, mcast::on(q));
  invoke_declared(s, {"queued "});
  CHECK(text == "direct queued ");
  CHECK(q.run() == 1);
  CHECK(text == "direct queued queued ");
}

TEST_CASE("an argument may have an operator& of its own") {
  struct holder {
    int number;
    int *operator&() { return &number; }
    const int *operator&() const { return &number; }
  };
  mcast::signal<void(holder, const holder &, holder)> s;
  mcast::queue q;
  int sum = 0;
  s.add([&](const holder &a, const holder &b, const holder &c) {
    sum += a.number + b.number + c.number;
  }, mcast::on(q));
  s({1}, {2}, {3});
  q.run();
  CHECK(sum == 6);
}
