// Tests options, pauses, views, registrations and signals.
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "test.hpp"

TEST_CASE("options are given in one line") {
  mcast::signal<void(int)> s;
  mcast::queue loop;
  mcast::lifetime plugin;
  std::string text;
  s.add([&](int) { text += 'a'; },
        mcast::on(loop) | mcast::priority(3) | mcast::under(plugin) | mcast::once);
  s.add([&](int) { text += 'b'; }, mcast::once | mcast::on(loop));
  mcast::options how;
  how.queue = loop;
  how.lifetime = plugin;
  s.add([&](int) { text += 'c'; }, how);
#if __cplusplus >= 202002L
  s.add([&](int) { text += 'd'; }, {.priority = 9, .lifetime = plugin, .queue = loop});
#else
  s.add([&](int) { text += 'd'; }, mcast::on(loop) | mcast::under(plugin) | mcast::priority(9));
#endif
  CHECK(plugin.count() == 3);
  s(1);
  loop.run();
  CHECK(text == "dabc");
  CHECK(plugin.count() == 2);
  plugin.end();
  CHECK(s.empty());
}

TEST_CASE("pauses of a registration are counted") {
  mcast::signal<void()> s;
  int calls = 0;
  const mcast::registration r = s.add([&] { ++calls; });
  {
    const mcast::scoped_pause outer(r);
    {
      const mcast::scoped_pause inner(r);
      s();
    }
    CHECK(r.is_paused());
    s();
    CHECK(calls == 0);
  }
  CHECK_FALSE(r.is_paused());
  s();
  CHECK(calls == 1);
  r.pause();
  { const mcast::scoped_pause inner(r); }
  CHECK(r.is_paused());
  r.resume();
  mcast::scoped_pause ends(r);
  mcast::scoped_pause moved = std::move(ends);
  mcast::scoped_pause &same = moved;
  moved = std::move(same);
  CHECK(s.invoke() == 0);
  moved.end();
  moved.end();
  CHECK(s.invoke() == 1);
}

TEST_CASE("pauses of a signal are counted, and concern it alone") {
  mcast::signal<void()> s, other;
  mcast::signal<int()> answers;
  int calls = 0;
  s.add([&] { ++calls; });
  other.add([&] { ++calls; });
  answers.add([] { return 1; });
  {
    const mcast::scoped_pause outer(s), of_answers(answers);
    {
      const mcast::scoped_pause inner(s);
      CHECK(s.is_paused());
    }
    s.add([&] { ++calls; });
    CHECK(s.invoke() == 0);
    CHECK(other.invoke() == 1);
    CHECK(answers.collect().empty());
    CHECK(s.size() == 2);
  }
  CHECK_FALSE(s.is_paused());
  CHECK(s.invoke() == 2);
  CHECK(calls == 3);
  auto short_lived = std::make_unique<mcast::signal<void()>>();
  const mcast::scoped_pause stays(*short_lived);
  short_lived.reset();
}

TEST_CASE("a registration is a condition and can be compared") {
  mcast::signal<void()> s;
  mcast::registration none;
  CHECK_FALSE(none);
  const mcast::registration a = s.add([] {}), b = s.add([] {});
  CHECK(a);
  CHECK(a == a);
  CHECK(a != b);
  mcast::scoped_registration owner = a;
  CHECK(owner);
  a.remove();
  CHECK_FALSE(a);
  CHECK_FALSE(owner);
}

TEST_CASE("registrations have an order and a hash") {
  mcast::signal<void()> s;
  const mcast::registration a = s.add([] {}), b = s.add([] {});
  std::set<mcast::registration> ordered{a, b, a};
  CHECK(ordered.size() == 2);
  CHECK(ordered.count(b) == 1);
  std::unordered_map<mcast::registration, int> names{{a, 1}, {b, 2}};
  CHECK(names[b] == 2);
  CHECK(names.count(mcast::registration()) == 0);
  CHECK((a < b) != (b < a));
  CHECK((a < b) == (b > a));
  CHECK((a <= b) == (b >= a));
  CHECK(a <= a);
#if defined(__cpp_lib_three_way_comparison)
  static_assert(std::three_way_comparable<mcast::registration, std::strong_ordering>);
  CHECK((a <=> b < 0) == (a < b));
#endif
}

TEST_CASE("a delegate finds its registration") {
  mcast::signal<void(int)> s;
  CHECK_FALSE(mcast::current());
  mcast::registration own, seen, extended;
  own = s.add([&](int) { seen = mcast::current(); });
  extended = s.add_extended([&](mcast::registration self, int n) {
    CHECK(self == extended);
    if (n == 2) self.remove();
  });
  s(1);
  CHECK(seen == own);
  CHECK(s.size() == 2);
  s(2);
  CHECK(s.size() == 1);
}

TEST_CASE("a view of a signal connects, and does no more") {
  class button {
   public:
    mcast::connectable<void(int)> clicked() { return clicked_.connectable(); }
    void click() { clicked_(1); }

   private:
    mcast::signal<void(int)> clicked_;
  };
  button b;
  int sum = 0;
  const auto add = [&](int n) { sum += n; };
  mcast::queue q;
  b.clicked().add(add);
  b.clicked().add(add, mcast::on(q) | mcast::priority(1));
  b.click();
  CHECK(q.run() == 1);
  CHECK(sum == 2);
  CHECK(b.clicked().remove(add) == MULTICAST_OK);
  b.click();
  CHECK(sum == 2);
}

TEST_CASE("a signal never used takes eight bytes and no multicast") {
  const mcast::signal<void(std::string)> s;
  static_assert(sizeof s == 8);
  CHECK(s.handle().id == 0);
  CHECK(s.invoke("text") == 0);
  CHECK(s.empty());
  CHECK(s.handle().id == 0);
}

TEST_CASE("a listener flag is set while there are listeners") {
  std::optional<mcast::signal<void(int)>> s(std::in_place);
  const mcast::listener_flag wanted = s->listener_flag();
  CHECK(!wanted);
  mcast::registration r = s->add([](int) {});
  CHECK(wanted);
  CHECK(r.remove() == MULTICAST_OK);
  CHECK(!wanted);
  mcast::scoped_registration other = s->add([](int) {});
  mcast::signal<void(int)> moved(std::move(*s));
  CHECK(wanted);
  CHECK(moved.listener_flag());
  s.reset();
  CHECK(wanted);
  CHECK(!mcast::listener_flag(multicast{0}));
}

TEST_CASE("threads that add first agree on one multicast") {
  for (int round = 0; round < 50; ++round) {
    mcast::signal<void()> s;
    std::atomic<int> calls{0};
    const auto add = [&] { s.add([&calls] { ++calls; }); };
    std::thread a(add), b(add);
    add();
    a.join();
    b.join();
    CHECK(s.invoke() == 3);
    CHECK(calls == 3);
  }
}

TEST_CASE("state that changes is kept, whatever the size") {
  mcast::signal<int()> s;
  s.add([n = 0]() mutable { return ++n; });
  CHECK(*s() == 1);
  CHECK(*s() == 2);
}

TEST_CASE("the later of two options counts") {
  mcast::signal<void()> s;
  mcast::queue first, second;
  s.add([] {}, mcast::on(first) | mcast::on(second));
  s();
  CHECK(first.run() == 0);
  CHECK(second.run() == 1);
}

TEST_CASE("options in braces are for signals that cannot be queued, too") {
  mcast::signal<int()> s;
  s.add([] { return 1; }, {true});  // once
  CHECK(s.collect().size() == 1);
  CHECK(s.empty());
}

TEST_CASE("nothing is paused by a pause of nothing") {
  mcast::scoped_pause pause{mcast::registration()};
  pause.end();
  pause.end();
}

TEST_CASE("many signals are paused, and no other") {
  std::vector<mcast::signal<void()>> all(200);
  for (auto &each : all) each.add([] {});
  std::vector<mcast::scoped_pause> pauses;
  for (size_t i = 0; i < all.size(); i += 2) pauses.emplace_back(all[i]);
  int64_t calls = 0;
  for (size_t i = 1; i < all.size(); i += 2) calls += all[i].invoke() - all[i - 1].invoke();
  CHECK(calls == 100);
  pauses.clear();
  for (const auto &each : all) calls += each.invoke();
  CHECK(calls == 300);
}

TEST_CASE("a callable that is made of a pointer is no null pointer") {
  struct logger {
    const char *name;
    logger(const char *given) : name(given) {}  // NOLINT(google-explicit-constructor)
    bool operator==(const logger &other) const { return name == other.name; }
    void operator()() const {}
  };
  struct plain {
    const void *data;
    plain(const void *given) : data(given) {}  // NOLINT(google-explicit-constructor)
    int operator()() const { return 1; }
  };
  mcast::signal<void()> s;
  int object = 0;
  CHECK(s.add(logger(nullptr)));
  CHECK(s.add(plain(nullptr)));
  CHECK(s.add(object, plain(nullptr)));
  CHECK(s.invoke() == 3);
  void (*none)() = nullptr;
  void (logger::*method)() const = nullptr;
  logger l("l");
  CHECK(failure([&] { s.add(none); }) == MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK(failure([&] { s.add(std::function<void()>()); }) == MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK(failure([&] { s.add(l, method); }) == MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK(failure([&] { s.add(object, none); }) == MULTICAST_ERROR_INVALID_ARGUMENT);
#if defined(__cpp_lib_move_only_function)
  CHECK(failure([&] { s.add(std::move_only_function<void()>()); }) ==
        MULTICAST_ERROR_INVALID_ARGUMENT);
#endif
  CHECK(s.add(object, +[] {}));
  CHECK(s.size() == 4);
}

TEST_CASE("many registrations are paused, and resumed in another order") {
  constexpr size_t count = 1000;
  mcast::signal<void()> s;
  std::vector<mcast::registration> all;
  std::vector<mcast::scoped_pause> pauses;
  for (size_t i = 0; i < count; ++i) {
    all.push_back(s.add([] {}));
    pauses.emplace_back(all.back());
  }
  CHECK(s.invoke() == 0);
  // 389 and 1000 are coprime, so the loop resumes each delegate once.
  size_t wrong = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t next = i * 389 % count;
    pauses[next].end();
    if (all[next].is_paused() || s.invoke() != static_cast<int64_t>(i + 1)) ++wrong;
  }
  CHECK(wrong == 0);
}
TEST_CASE("at_front is before all, however many there were") {
  mcast::signal<void()> s, other;
  std::string text;
  const auto add = [&](char c) {
    return s.add([&text, c] { text += c; }, mcast::at_front);
  };
  add('1');
  // Use the highest priority, so that no priority is left for an add at the front.
  const mcast::registration last = other.add([] {}, mcast::priority(INT32_MAX));
  CHECK(failure([&] { other.add([] {}, mcast::at_front); }) == MULTICAST_ERROR_LIMIT);
  CHECK(other.size() == 1);
  last.remove();
  other.add([&] { text += 'o'; }, mcast::at_front);
  add('2');
  const mcast::registration high = s.add([&] { text += 'h'; }, mcast::priority(INT32_MAX - 1));
  add('3');
  high.remove();
  s();
  CHECK(text == "321");
  CHECK(failure([&] { add('4'); }) == MULTICAST_ERROR_LIMIT);
  other();
  CHECK(text == "321o");
}

TEST_CASE("a scoped registration has the functions of other libraries") {
  mcast::signal<void(int)> s;
  mcast::scoped_connection c = s.connect([](int) {});
  CHECK(c.connected());
  CHECK(c.is_valid());
  c.disconnect();
  CHECK_FALSE(c.connected());
  mcast::scoped_registration r = s.add([](int) {});
  CHECK(r.remove() == MULTICAST_OK);
  CHECK_FALSE(r);
  CHECK(r.remove() == MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(mcast::scoped_registration().remove() == MULTICAST_ERROR_INVALID_HANDLE);
}

