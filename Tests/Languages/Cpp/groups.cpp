// Tests groups of delegates, whose keys can have any ordered type.
#include <algorithm>
#include <cstddef>

#include "test.hpp"

#include <multicast/groups.hpp>

namespace groups_tests {
std::string text;
auto letter(char c) {
  return [c] { text += c; };
}
std::string called(const mcast::signal<void()> &s) {
  text.clear();
  s();
  return text;
}

TEST_CASE("groups are called by their keys, then by addition") {
  mcast::signal<void()> s;
  mcast::groups<std::string> names;
  s.add(letter('c'), names.in("m"));
  s.add(letter('a'), names.in("a"));
  s.add(letter('e'), names.in("z"));
  s.add(letter('d'), names.in("m"));
  s.add(letter('b'), names.in("b"));
  s.add(letter('0'), mcast::at_front);
  CHECK(called(s) == "0abcde");
  CHECK(names.count("m") == 2);
  CHECK(names.remove("m") == 2);
  CHECK(called(s) == "0abe");
  CHECK(names.remove("m") == 0);
  CHECK(names.remove("unknown") == 0);
  s.add(letter('c'), names.in("m"));
  CHECK(called(s) == "0abce");
}

TEST_CASE("numbers are groups, and an order of one's own is one") {
  mcast::signal<void()> s;
  mcast::groups<int> numbers;
  s.add(letter('c'), numbers.in(1000000));
  s.add(letter('b'), numbers.in(0));
  s.add(letter('a'), numbers.in(-5));
  CHECK(called(s) == "abc");
  mcast::signal<void()> reversed;
  mcast::groups<int, std::greater<int>> greatest_first;
  for (int i = 0; i < 5; ++i) {
    reversed.add(letter(static_cast<char>('0' + i)), greatest_first.in(i));
  }
  CHECK(called(reversed) == "43210");
}

// Adds a delegate for each key, and returns whether the delegates are called in the order of their
// keys.
template <typename Groups, typename Keys>
bool are_in_order(Groups &groups, const Keys &keys) {
  mcast::signal<void()> s;
  std::vector<typename Keys::value_type> called_keys;
  for (const auto &key : keys) {
    s.add([&called_keys, key] { called_keys.push_back(key); }, groups.in(key));
  }
  s();
  return called_keys.size() == keys.size() &&
         std::is_sorted(called_keys.begin(), called_keys.end());
}

TEST_CASE("all numbers are groups, in any order") {
  const std::vector<int> numbers = {0, INT32_MAX, INT32_MIN, 1 << 30, -(1 << 30), 5, INT32_MAX - 1,
                                    INT32_MIN + 1, -(1 << 29), -(1 << 29) - 1, -(1 << 29) - 2, -5,
                                    INT32_MIN + 2, INT32_MAX - 2, 1 << 29};
  for (size_t turn = 0; turn < numbers.size(); ++turn) {
    std::vector<int> turned = numbers;
    std::rotate(turned.begin(), turned.begin() + static_cast<std::ptrdiff_t>(turn), turned.end());
    mcast::groups<int> groups;
    CHECK(are_in_order(groups, turned));
  }
  const std::vector<uint64_t> large = {1, UINT64_MAX, 0, UINT64_MAX - 1, uint64_t{1} << 40};
  mcast::groups<uint64_t> unsigned_groups;
  CHECK(are_in_order(unsigned_groups, large));
  const std::vector<int64_t> wide = {INT64_MIN, INT64_MAX, 0, INT64_MIN + 1, INT64_MAX - 1};
  mcast::groups<int64_t> wide_groups;
  CHECK(are_in_order(wide_groups, wide));
}

TEST_CASE("many keys are groups, in mixed order and in their own") {
  std::vector<std::string> mixed, rising, falling;
  for (int i = 0; i < 1000; ++i) mixed.push_back("group " + std::to_string((i * 7919) % 1000));
  for (int i = 0; i < 5000; ++i) rising.push_back(std::to_string(10000 + i));
  falling.assign(rising.rbegin(), rising.rend());
  mcast::groups<std::string> a, b, c;
  CHECK(are_in_order(a, mixed));
  CHECK(are_in_order(b, rising));
  CHECK(are_in_order(c, falling));
  mcast::groups<int, std::greater<int>> greatest_first;
  mcast::signal<void()> s;
  std::vector<int> heard;
  for (int i = 0; i < 1000; ++i) {
    const int key = (i * 37) % 1000;
    s.add([&heard, key] { heard.push_back(key); }, greatest_first.in(key));
  }
  s();
  CHECK(std::is_sorted(heard.rbegin(), heard.rend()));
}

TEST_CASE("delegates without a group are first or last, on request") {
  mcast::signal<void()> s;
  mcast::groups<int> numbers;
  s.add(letter('x'), mcast::at_back);
  s.add(letter('b'), numbers.in(INT32_MAX));
  s.add(letter('a'), numbers.in(INT32_MIN));
  s.add(letter('y'), mcast::at_back);
  s.add(letter('0'), mcast::at_front);
  CHECK(called(s) == "0abxy");
}

TEST_CASE("a group has delegates of several signals, with all options") {
  mcast::signal<void()> s, other;
  mcast::groups<std::string> names;
  mcast::queue q;
  mcast::lifetime plugin;
  s.add(letter('a'), names.in("x") | mcast::on(q) | mcast::under(plugin));
  other.add(letter('b'), names.in("x") | mcast::once);
  CHECK(called(other) == "b");
  CHECK(names.count("x") == 1);
  plugin.end();
  CHECK(names.count("x") == 0);
}

TEST_CASE("a group is paused, and the pauses are counted") {
  mcast::signal<void()> s;
  mcast::groups<std::string> names;
  s.add(letter('a'), names.in("x"));
  s.add(letter('b'), names.in("y"));
  s.add(letter('c'), names.in("x"));
  {
    const auto outer = names.pause("x");
    { const auto inner = names.pause("x"); }
    CHECK(called(s) == "b");
  }
  CHECK(called(s) == "acb");
}

TEST_CASE("a group does not keep registrations that have ended") {
  mcast::signal<void()> s;
  mcast::groups<int> numbers;
  mcast::registration kept = s.add(letter('k'), numbers.in(1));
  for (int i = 0; i < 1000; ++i) {
    const mcast::scoped_registration r = s.add(letter('a'), numbers.in(1));
    if (i % 100 == 0) CHECK(numbers.count(1) == 2);
  }
  CHECK(numbers.count(1) == 1);
  CHECK(numbers.remove(1) == 1);
  CHECK_FALSE(kept.is_valid());
}

TEST_CASE("a group may be removed by a delegate of it") {
  mcast::signal<void()> s;
  mcast::queue q;
  mcast::groups<int> numbers;
  size_t removed = 0;
  s.add([&] { removed = numbers.remove(1); }, mcast::on(q) | numbers.in(1));
  s.add([] {}, mcast::once | numbers.in(1));
  CHECK(numbers.count(1) == 2);
  s();
  CHECK(numbers.count(1) == 1);
  CHECK(q.run() == 1);
  CHECK(removed == 1);
  CHECK(s.empty());
}

TEST_CASE("a group that finds no place is an error") {
  mcast::groups<double> numbers;
  numbers.in(0);
  numbers.in(1);
  double key = 1;
  int made = 0;
  CHECK(failure([&] {
    for (;; ++made) numbers.in(key /= 2);
  }) == MULTICAST_ERROR_LIMIT);
  CHECK(made == 29);
}

}  // namespace groups_tests
