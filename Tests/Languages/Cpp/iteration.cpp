// Tests signal::results() and signal::combine(), which return the results of a signal one by one.
#include <algorithm>
#include <numeric>

#include "test.hpp"

#if __cplusplus >= 202002L && __has_include(<ranges>)
#include <ranges>
static_assert(std::ranges::forward_range<mcast::result_range<int(int), int> &>);
#endif

namespace iteration_tests {

// A signal with delegates that return 0, 1, 2 and count their calls.
struct numbers {
  mcast::signal<int(int)> s;
  int calls = 0;
  std::vector<mcast::registration> all;

  numbers() {
    for (int i = 0; i < 3; ++i) {
      all.push_back(s.add([this, i](int n) {
        ++calls;
        return n + i;
      }));
    }
  }
};

// A combiner that is written like a combiner for Boost.Signals2.
struct maximum {
  using result_type = int;
  template <typename Iterator>
  int operator()(Iterator first, Iterator last) const {
    int best = *first;
    while (++first != last) best = std::max(best, *first);
    return best;
  }
};

TEST_CASE("results come one by one, and nothing unasked is called") {
  numbers n;
  std::vector<int> got;
  for (const int each : n.s.results(10)) got.push_back(each);
  CHECK(got == std::vector<int>{10, 11, 12});
  n.calls = 0;
  for (const int each : n.s.results(10)) {
    CHECK(n.calls == 1);
    CHECK(each == 10);
    break;
  }
  CHECK(std::exchange(n.calls, 0) == 1);
  auto range = n.s.results(0);
  auto i = range.begin();
  CHECK(n.calls == 0);
  CHECK(*i == 0);
  CHECK(*i == 0);
  ++i;
  CHECK(n.calls == 1);
  CHECK(*i++ == 1);
  CHECK(n.calls == 2);
  ++i;  // does not read the last result
  CHECK(n.calls == 3);
  CHECK(i == range.end());
  CHECK(range.begin() != i);
  CHECK(*range.begin() == 0);  // the stored result
  CHECK(n.calls == 3);
  n.s.clear();
  for (const int each : n.s.results(0)) CHECK(each == -1);
  mcast::signal<int()> none;
  auto nothing = none.results();
  CHECK(nothing.begin() == nothing.end());
}

TEST_CASE("a combiner gets two iterators") {
  numbers n;
  CHECK(n.s.combine([](auto first, auto last) { return std::accumulate(first, last, 0); }, 1) == 6);
  n.calls = 0;
  CHECK(n.s.combine([](auto first, auto) { return *first; }, 5) == 5);
  CHECK(n.calls == 1);
  CHECK(n.s.combine(maximum(), 7) == 9);
}

TEST_CASE("algorithms may pass over the results several times") {
  mcast::signal<int()> s;
  int calls = 0;
  for (const int i : {3, 1, 42, 1}) {
    s.add([&calls, i] {
      ++calls;
      return i;
    });
  }
  CHECK(s.combine([](auto a, auto b) { return *std::min_element(a, b); }) == 1);
  CHECK(calls == 4);
  auto range = s.results();
  CHECK(std::max_element(range.begin(), range.end()) == std::next(range.begin(), 2));
  CHECK(std::distance(range.begin(), range.end()) == 4);
  CHECK(std::adjacent_find(range.begin(), range.end()) == range.end());
  CHECK(calls == 8);
  auto first = range.begin(), second = first++;
  CHECK(*first == 1);
  CHECK(*second == 3);
  CHECK(first != second);
  CHECK(++second == first);
}

TEST_CASE("a combiner returns no reference to results that are gone") {
  const auto first = [](auto a, auto) -> decltype(auto) { return *a; };
  mcast::signal<std::string()> s;
  s.add([] { return std::string(100, 'x'); });
  const auto made = s.combine(first);
  static_assert(std::is_same_v<decltype(s.combine(first)), std::string>);
  CHECK(made == std::string(100, 'x'));
  mcast::signal<int &()> references;
  int number = 1;
  references.add([&number]() -> int & { return number; });
  CHECK(&references.combine(first) == &number);
  mcast::signal<std::unique_ptr<int>()> owners;
  owners.add([] { return std::make_unique<int>(4); });
  CHECK(*owners.combine([](auto a, auto) { return std::move(*a); }) == 4);
}

TEST_CASE("an exception comes in place of the result") {
  mcast::signal<int()> s;
  s.add([] { return 1; });
  s.add([]() -> int { throw std::runtime_error("second"); });
  s.add([] { return 3; });
  auto range = s.results();
  auto i = range.begin();
  CHECK(*i == 1);
  CHECK_NOTHROW(++i);
  CHECK_THROWS_WITH(static_cast<void>(i == range.end()), "second");
  CHECK(*i == 3);
  ++i;
  CHECK(i == range.end());
  CHECK(std::vector<int>(range.begin(), range.end()) == std::vector<int>{1, 3});  // no second call
}

TEST_CASE("changes and the end of the signal during an iteration") {
  auto n = std::make_unique<numbers>();
  n->all[2].pause();
  auto range = n->s.results(0);
  auto i = range.begin();
  CHECK(*i == 0);
  n->all[1].remove();
  n->s.add([](int) { return 9; });
  ++i;
  CHECK(i == range.end());  // the third was paused, the fourth was added later
  n->all[2].resume();
  auto last = n->s.results(0);
  i = last.begin();
  CHECK(*i == 0);
  n.reset();
  ++i;
  CHECK(i == last.end());
}

TEST_CASE("what is paused as a whole has no results") {
  numbers n;
  const mcast::scoped_pause pause(n.s);
  auto range = n.s.results(0);
  CHECK(range.begin() == range.end());
}

TEST_CASE("an iteration finds dead objects, and calls once what is once") {
  mcast::signal<int()> s;
  auto object = std::make_shared<int>(5);
  s.add(mcast::tracked([] { return 1; }, object));
  s.add([] { return 2; }, mcast::once);
  auto range = s.results();
  object.reset();
  CHECK(*range.begin() == 2);
  CHECK(s.empty());
  CHECK(s.collect().empty());
}

TEST_CASE("once means once, by whatever function it is called") {
  mcast::signal<int()> s;
  mcast::registration r;
  r = s.add([&r] { return r.is_valid() ? 1 : 2; }, mcast::once);
  const auto one = +[] { return 3; };
  s.add(one, mcast::once | mcast::unique);
  s.add(one, mcast::once | mcast::unique);
  CHECK(s.size() == 2);
  const auto unused = s.results();  // only binds the arguments
  CHECK(s.size() == 2);
  CHECK(s.collect() == std::vector<int>{2, 3});
  CHECK(s.empty());
  s.add(one, mcast::once);
  CHECK(s.remove(one) == MULTICAST_OK);
  CHECK(s.empty());
  // A delegate added with `once` is not called a second time if it invokes the signal again.
  s.add([&s] { return static_cast<int>(s.collect().size()); }, mcast::once);
  CHECK(s.collect() == std::vector<int>{0});
}

TEST_CASE("of several threads, one makes the call that is once") {
  mcast::signal<int()> s;
  std::atomic<int> calls{0};
  for (int round = 0; round < 200; ++round) {
    s.add([&calls] { return ++calls; }, mcast::once);
    gate start;
    std::vector<std::thread> threads;
    std::atomic<size_t> results{0};
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([&] {
        start.wait();
        results += s.collect().size();
      });
    }
    start.open();
    for (std::thread &thread : threads) thread.join();
    CHECK(results == 1);
    CHECK(calls == round + 1);
    CHECK(s.empty());
  }
}

TEST_CASE("an iteration holds temporaries, and refers to variables") {
  mcast::signal<char(const std::string &, std::string_view, int &, std::unique_ptr<int>)> s;
  const std::string *seen = nullptr;
  s.add([&](const std::string &text, std::string_view view, int &count,
            const std::unique_ptr<int> &owned) {
    seen = &text;
    count += *owned;
    return view.back();
  });
  const std::string variable = "variable";
  int count = 0;
  {
    auto range = s.results(variable, std::string(100, 'x') + 'y', count, std::make_unique<int>(2));
    CHECK(*range.begin() == 'y');
  }
  CHECK(seen == &variable);
  CHECK(count == 2);
  CHECK(s.combine([](auto first, auto) { return *first; }, "literal", "z", count,
                  std::make_unique<int>(1)) == 'z');
}

TEST_CASE("an iteration holds derived arguments whole, owns pointers") {
  struct base {
    virtual ~base() = default;
    virtual int number() const = 0;
  };
  struct derived : base {
    int number() const override { return 2; }
  };
  mcast::signal<int(const base &, std::unique_ptr<base>)> s;
  s.add([](const base &a, const auto &b) { return 10 * a.number() + b->number(); });
  const derived variable;
  for (const int each : s.results(derived(), std::make_unique<derived>())) CHECK(each == 22);
  for (const int each : s.results(variable, std::make_unique<derived>())) CHECK(each == 22);
}

TEST_CASE("results may be references, and movable only") {
  mcast::signal<int &()> references;
  int number = 1;
  references.add([&]() -> int & { return number; });
  for (int &each : references.results()) ++each;
  CHECK(number == 2);
  auto range = references.results();
  auto i = range.begin();
  CHECK(&*i++ == &number);
  mcast::signal<std::unique_ptr<int>()> owners;
  owners.add([] { return std::make_unique<int>(3); });
  std::vector<std::unique_ptr<int>> all;
  for (auto &each : owners.results()) all.push_back(std::move(each));
  CHECK(*all.front() == 3);
  auto more = owners.results();
  auto j = more.begin();
  CHECK(*j->get() == 3);
  CHECK(**j++ == 3);
}
TEST_CASE("results need not be assignable") {
  struct fixed {
    const int number;
  };
  mcast::signal<fixed(int)> s;
  for (int i = 0; i < 2; ++i) s.add([i](int n) { return fixed{n + i}; });
  int sum = 0;
  for (const fixed &each : s.results(10)) sum += each.number;
  CHECK(sum == 21);
  CHECK(s.combine([](auto first, auto last) {
    int best = 0;
    for (; first != last; ++first) best = first->number;
    return best;
  }, 1) == 2);
  CHECK(s(5)->number == 6);
  CHECK(s.first_of(5)->number == 5);
  CHECK(s.collect(5).at(1).number == 6);
}

#if __cplusplus >= 202002L && __has_include(<ranges>)
TEST_CASE("the results are a range of C++20") {
  numbers n;
  auto range = n.s.results(1);
  int sum = 0;
  for (const int each : range | std::views::transform([](int r) { return 10 * r; }) |
                            std::views::take(2)) {
    sum += each;
  }
  CHECK(sum == 30);
  CHECK(n.calls == 2);
}
#endif

}  // namespace iteration_tests
