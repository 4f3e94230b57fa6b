// Tests signals' policies, all-or-none invocations, and descriptions of delegates.
#include <stdexcept>

#include "test.hpp"

struct deferred {
  std::string text;
};
void invoke_deferred(const mcast::signal<void(const deferred &)> &s, const deferred &argument);

namespace {

mcast::policies reenter(mcast::reentry how) {
  mcast::policies result;
  result.reentry = how;
  return result;
}

enum class phase { prepare, roll_back };

}  // namespace

TEST_CASE("a signal with policies is a signal") {
  mcast::signal<void(int)> s{mcast::policies{}};
  int sum = 0;
  s.add([&](int n) { sum += n; });
  CHECK(s.invoke(3) == 1);
  mcast::signal<void(int)> moved = std::move(s);
  moved(4);
  CHECK(sum == 7);
}

TEST_CASE("an invocation inside a call is refused") {
  mcast::signal<void()> s{reenter(mcast::reentry::refuse)};
  multicast_status status = MULTICAST_OK;
  s.add([&] { status = failure([&] { s(); }); });
  CHECK(s.invoke() == 1);
  CHECK(status == MULTICAST_ERROR_STATE);
}

TEST_CASE("an invocation inside a call is deferred with its arguments") {
  mcast::signal<void(int)> plain{reenter(mcast::reentry::defer)};
  mcast::signal<void(const std::string &)> owning{reenter(mcast::reentry::defer)};
  std::string text;
  plain.add([&](int n) {
    text += '(';
    if (n > 0) CHECK(plain.invoke(n - 1) == 0);
    text += std::to_string(n) + ')';
  });
  CHECK(plain.invoke(2) == 1);
  CHECK(text == "(2)(1)(0)");
  text.clear();
  owning.add([&](const std::string &word) {
    text += '(';
    if (word.size() < 90) owning(word + std::string(40, '.'));
    text += word + ')';
  });
  owning(std::string("a"));
  CHECK(text == "(a)(a" + std::string(40, '.') + ")(a" + std::string(80, '.') + ")(a" +
                    std::string(120, '.') + ")");
}

TEST_CASE("an invocation is deferred where its argument is undefined") {
  mcast::signal<void(const deferred &)> s{reenter(mcast::reentry::defer)};
  std::string text;
  s.add([&](const deferred &argument) {
    if (text.empty()) invoke_deferred(s, {"inside"});
    text += argument.text + ' ';
  });
  invoke_deferred(s, {"outside"});
  CHECK(text == "outside inside ");
}

TEST_CASE("of the invocations inside a call the newest is made") {
  mcast::signal<void(int)> s{reenter(mcast::reentry::defer_latest)};
  std::vector<int> calls;
  s.add([&](int n) {
    calls.push_back(n);
    if (n == 0) {
      s(1);
      s(2);
    }
  });
  s(0);
  CHECK(calls == std::vector<int>{0, 2});
}

TEST_CASE("what a deferred call throws goes to the handler") {
  const handled exceptions;
  mcast::signal<void(int)> s{reenter(mcast::reentry::defer)};
  s.add([&](int n) {
    if (n == 0) s(1);
    throw std::runtime_error("n");
  });
  CHECK_THROWS_AS(s(0), std::runtime_error);
  CHECK(handled::count() == 1);
}

TEST_CASE("without copies of arguments nothing is deferred") {
  const auto make_reference = [](mcast::reentry how) {
    return failure([&] { const mcast::signal<void(int &)> s{reenter(how)}; });
  };
  CHECK(make_reference(mcast::reentry::refuse) == MULTICAST_OK);
  CHECK(make_reference(mcast::reentry::defer) == MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK(make_reference(mcast::reentry::defer_latest) == MULTICAST_ERROR_INVALID_ARGUMENT);
  const auto make_results = [](mcast::reentry how) {
    return failure([&] { const mcast::signal<int()> s{reenter(how)}; });
  };
  CHECK(make_results(mcast::reentry::recurse) == MULTICAST_OK);
  CHECK(make_results(mcast::reentry::refuse) == MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK(make_results(static_cast<mcast::reentry>(9)) == MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK(make_reference(static_cast<mcast::reentry>(9)) == MULTICAST_ERROR_INVALID_ARGUMENT);
}

TEST_CASE("a refused policy is an error, its function is destroyed") {
  const auto kept = std::make_shared<int>(0);
  mcast::policies how = reenter(static_cast<mcast::reentry>(9));
  how.listeners_changed = [kept](bool) {};
  CHECK(failure([&] { const mcast::signal<void()> s{how}; }) ==
        MULTICAST_ERROR_INVALID_ARGUMENT);
  how = mcast::policies();
  CHECK(kept.use_count() == 1);
}

TEST_CASE("a signal tells whether it has delegates") {
  std::string told;
  const auto kept = std::make_shared<int>(0);
  {
    mcast::policies how;
    how.listeners_changed = [&told, kept](bool wanted) { told += wanted ? '+' : '-'; };
    mcast::signal<int()> s{how};
    const mcast::registration a = s.add([] { return 1; });
    const mcast::registration b = s.add([] { return 2; });
    a.remove();
    CHECK(told == "+");
    b.remove();
    CHECK(told == "+-");
    s.add([] { return 3; });
  }
  CHECK(told == "+-+-");
  CHECK(kept.use_count() == 1);
}

TEST_CASE("a listeners_changed function is copied with its policies") {
  void (*none)(bool) = nullptr;
  CHECK(!mcast::policies().listeners_changed);
  CHECK(!mcast::listeners_changed_function(none));
  CHECK(!mcast::listeners_changed_function(std::function<void(bool)>()));
  std::string told;
  mcast::policies how;
  how.listeners_changed = [&told, count = 0](bool wanted) mutable {
    told += static_cast<char>((wanted ? 'a' : 'A') + count++);
  };
  mcast::policies copy = how;
  how.listeners_changed = nullptr;
  CHECK(!how.listeners_changed);
  const mcast::policies moved = std::move(copy);
  CHECK(!copy.listeners_changed);  // NOLINT(bugprone-use-after-move): this is the test
  mcast::signal<void()> first{moved}, second{moved};
  for (auto *const s : {&first, &second}) {
    const mcast::scoped_registration r = s->add([] {});
  }
  CHECK(told == "aBaB");  // each signal has its own copy
  moved.listeners_changed(true);
  CHECK(told == "aBaBa");
}

TEST_CASE("an exception from listeners_changed goes to the handler") {
  const handled exceptions;
  {
    mcast::policies how;
    how.listeners_changed = [](bool wanted) {
      if (wanted) throw std::runtime_error("listeners_changed");
    };
    mcast::signal<void()> s{how};
    s.add([] {});
  }
  CHECK(handled::count() == 1);
}

TEST_CASE("all agree, or those that have are called again, in reverse") {
  mcast::signal<bool(phase, std::string &)> s;
  bool agrees = true;
  const auto add = [&](char name, const bool &answer) {
    return s.add([name, &answer](phase now, std::string &log) {
      log += now == phase::prepare ? '+' : '-';
      log += name;
      return answer;
    });
  };
  const bool yes = true;
  std::string log;
  CHECK(s.all_or_undo({phase::prepare, log}, {phase::roll_back, log}));
  add('a', yes);
  add('b', yes);
  add('c', agrees);
  add('d', yes);
  CHECK(s.all_or_undo({phase::prepare, log}, {phase::roll_back, log}));
  CHECK(log == "+a+b+c+d");
  log.clear();
  agrees = false;
  CHECK_FALSE(s.all_or_undo({phase::prepare, log}, {phase::roll_back, log}));
  CHECK(log == "+a+b+c-b-a");
}

TEST_CASE("a delegate that throws has refused") {
  mcast::signal<bool(bool)> s;
  int undone = 0;
  s.add([&](bool asked) {
    if (!asked) ++undone;
    return true;
  });
  s.add([](bool) -> bool { throw std::runtime_error("no"); });
  CHECK_THROWS_AS(s.all_or_undo({true}, {false}), std::runtime_error);
  CHECK(undone == 1);
}

TEST_CASE("a delegate that is called once is not there for the undo") {
  mcast::signal<bool(bool)> s;
  std::string log;
  s.add([&](bool asked) { return log += asked ? "+a" : "-a", true; }, mcast::once);
  s.add([&](bool asked) { return log += asked ? "+b" : "-b", true; });
  s.add([&](bool) { return false; });
  CHECK_FALSE(s.all_or_undo({true}, {false}));
  CHECK(log == "+a+b-b");
}

TEST_CASE("registrations are enumerated") {
  mcast::signal<void()> s;
  CHECK(s.enumerate([](const multicast_registration &) {}) == 0);
  const mcast::registration a = s.add([] {}, mcast::label("a"));
  const mcast::registration b = s.add([] {}, mcast::priority(2) | mcast::label("b"));
  const mcast::registration c = s.add([] {});
  b.pause();
  std::vector<mcast::registration> all;
  std::string labels;
  CHECK(s.enumerate([&](const multicast_registration &each) {
    all.emplace_back(each.token);
    labels += each.label != nullptr ? each.label : "-";
  }) == 3);
  CHECK(all == std::vector<mcast::registration>{b, a, c});
  CHECK(labels == "ba-");
  CHECK(s.enumerate([](const multicast_registration &each) { return each.priority != 0; }) == 2);
  const auto throws = [](const multicast_registration &) { throw std::runtime_error("x"); };
  CHECK_THROWS_AS(s.enumerate(throws), std::runtime_error);
  CHECK(s.invoke() == 2);
}

TEST_CASE("the last label counts") {
  mcast::signal<void()> s;
  s.add([] {}, mcast::label("first") | mcast::once);
  s.add([] {}, mcast::label("first") | mcast::label("second"));
  std::string labels;
  s.enumerate([&](const multicast_registration &each) { labels += each.label; });
  CHECK(labels == "firstsecond");
}

TEST_CASE("signals are described") {
  mcast::policies how;
  how.label = "doors";
  mcast::signal<void()> s{how}, empty;
  s.add([] {}, mcast::label(MULTICAST_HERE));
  const std::string text = s.describe();
  CHECK(text.find("\"doors\"") != std::string::npos);
  CHECK(text.find("policies.cpp:") != std::string::npos);
  CHECK(mcast::dump().find("\"doors\"") != std::string::npos);
  CHECK(empty.describe().empty());
}
