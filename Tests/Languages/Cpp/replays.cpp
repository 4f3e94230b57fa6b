// Tests signals that replay. Checks that the buffered arguments are correct, and that each delegate
// receives each invocation once.
#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "test.hpp"

struct replayed {
  std::string text;
};
void invoke_replayed(const mcast::signal<void(const replayed &)> &s, const replayed &argument);

namespace replay_tests {

// Runs a body on a thread, and then makes the stack of that thread inaccessible.
class lost_stack {
 public:
  template <typename Body>
  explicit lost_stack(Body &&body) {
    using given = std::remove_reference_t<Body>;
    REQUIRE(stack_ != MAP_FAILED);
    pthread_attr_t how;
    REQUIRE(pthread_attr_init(&how) == 0);
    REQUIRE(pthread_attr_setstack(&how, stack_, size) == 0);
    const auto run = [](void *context) -> void * {
      (*static_cast<given *>(context))();
      return nullptr;
    };
    pthread_t thread;
    REQUIRE(pthread_create(&thread, &how, run, std::addressof(body)) == 0);
    REQUIRE(pthread_join(thread, nullptr) == 0);
    REQUIRE(pthread_attr_destroy(&how) == 0);
    REQUIRE(mprotect(stack_, size, PROT_NONE) == 0);
  }
  lost_stack(const lost_stack &) = delete;
  lost_stack &operator=(const lost_stack &) = delete;
  ~lost_stack() { munmap(stack_, size); }

 private:
  static constexpr size_t size = size_t{4} << 20;
  void *stack_ = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
};

// The alignment and the size of the last payload that a delegate has received, and the number of
// calls.
struct seen {
  uintptr_t remainder = 1;
  size_t size = 0;
  int calls = 0;

  static void note(void *context, uint32_t, const void *payload, size_t size) {
    seen &self = *static_cast<seen *>(context);
    self.remainder = reinterpret_cast<uintptr_t>(payload) % 16;
    self.size = size;
    ++self.calls;
  }
  template <typename Signal>
  void add(const Signal &to, multicast_queue queue = {0}, uint32_t flags = 0) {
    multicast_add_options how = MULTICAST_ADD_OPTIONS_INIT;
    how.queue = queue;
    how.flags = flags;
    REQUIRE(multicast_add(to.handle(), {note, this}, &how, nullptr) == MULTICAST_OK);
  }
};

template <typename... Args, typename... Given>
void check_addresses(Given &&...given) {
  mcast::policies how = mcast::replay(1);
  how.reentry = mcast::reentry::defer;
  mcast::signal<void(Args...)> s{how};
  const mcast::queue q;
  seen direct, deferred, queued, late;
  direct.add(s);
  queued.add(s, q.handle());
  s(given...);
  CHECK(direct.remainder == 8);
  CHECK(multicast_queue_run(q.handle(), 0) == 1);
  CHECK(queued.remainder == 0);
  late.add(s);
  CHECK(late.calls == 1);
  CHECK(late.remainder == 0);
  bool is_first = true;
  s.add([&](const auto &...) {
    if (std::exchange(is_first, false)) s(given...);
  }, mcast::no_replay);
  deferred.add(s, {0}, MULTICAST_NO_REPLAY);
  s(given...);
  CHECK(deferred.calls == 2);
  CHECK(deferred.remainder == 0);
}

TEST_CASE("a delegate that is added gets the last invocations, in order") {
  mcast::signal<void(int)> plain{mcast::replay(2)};
  mcast::policies how;
  how.replay = 3;
  mcast::signal<void(std::string)> kept{how};
  std::vector<int> numbers;
  std::string text;
  for (int i = 0; i < 5; ++i) {
    plain(i);
    kept(std::to_string(i) + std::string(40, '.'));
  }
  plain.add([&](int n) { numbers.push_back(n); });
  CHECK(numbers == std::vector<int>{3, 4});
  plain(5);
  CHECK(numbers == std::vector<int>{3, 4, 5});
  kept.add([&](const std::string &each) { text += each.at(0); });
  CHECK(text == "234");
  const auto moved = std::move(kept);
  moved("5");
  CHECK(text == "2345");
}

TEST_CASE("a delegate may be added without a replay") {
  mcast::signal<void(int)> s{mcast::replay(1)};
  int sum = 0;
  s(1);
  s.add([&](int n) { sum += n; }, mcast::priority(1) | mcast::no_replay);
  CHECK(sum == 0);
  mcast::options how;
  how.no_replay = true;
  s.add([&](int n) { sum += n; }, how);
  CHECK(sum == 0);
  s.add([&](int n) { sum += 10 * n; });
  CHECK(sum == 10);
  s(100);
  CHECK(sum == 1210);
}

TEST_CASE("a delegate gets what it gets by its options") {
  mcast::signal<void(int)> s{mcast::replay(3)};
  std::vector<int> numbers;
  for (int i = 1; i <= 3; ++i) s(i);
  const auto note = [&](int n) { numbers.push_back(n); };
  SUBCASE("once: the oldest") {
    s.add(note, mcast::once);
    CHECK(numbers == std::vector<int>{1});
    CHECK(s.empty());
  }
  SUBCASE("until it removes itself") {
    s.add([&](int n) {
      numbers.push_back(n);
      if (n == 2) mcast::current().remove();
    });
    CHECK(numbers == std::vector<int>{1, 2});
    CHECK(s.empty());
  }
  SUBCASE("in its queue") {
    mcast::queue q;
    s.add(note, mcast::on(q));
    CHECK(numbers.empty());
    CHECK(q.run() == 3);
    CHECK(numbers == std::vector<int>{1, 2, 3});
  }
  SUBCASE("with its object") {
    const auto object = std::make_shared<std::vector<int>>();
    s.add(object, [kept = object.get()](int n) { kept->push_back(n); });
    CHECK(*object == std::vector<int>{1, 2, 3});
  }
  SUBCASE("not what a paused signal was invoked with") {
    {
      const mcast::scoped_pause pause(s);
      s(4);
    }
    s.add(note);
    CHECK(numbers == std::vector<int>{1, 2, 3});
  }
}

TEST_CASE("views and texts are kept as strings") {
  mcast::signal<void(std::string_view, const char *, const std::vector<int> &)> s{mcast::replay(1)};
  {
    std::string view = "a view that is long enough for the heap", text = "text";
    std::vector<int> numbers{1, 2, 3};
    s(view, text.c_str(), numbers);
    view.assign(view.size(), '?');
    text.assign(text.size(), '?');
    numbers.assign(numbers.size(), 0);
  }
  std::string got;
  s.add([&](std::string_view view, const char *text, const std::vector<int> &numbers) {
    got = std::string(view) + text + std::to_string(numbers.at(2));
  });
  CHECK(got == "a view that is long enough for the heaptext3");
}

// ---- Data on an invocation's stack, which a copy does not contain ---------------------------

TEST_CASE("a replay does not look at the stack of its invocation") {
  const handled exceptions;
  mcast::signal<void(int)> plain{mcast::replay(1)};
  mcast::signal<void(const std::string &)> owning{mcast::replay(1)};
  mcast::signal<void()> empty{mcast::replay(1)};
  const lost_stack stack([&] {
    std::string text = "a text that is too long for a small string";
    plain(7);
    owning(text);
    empty();
  });
  int number = 0;
  std::string text;
  const mcast::registration r = plain.add([&](int n) {
    number = n;
    throw std::runtime_error("plain");
  });
  CHECK(r.is_valid());
  owning.add([&](const std::string &given) {
    text = given;
    throw std::runtime_error("owning");
  });
  empty.add([] { throw std::runtime_error("empty"); });
  CHECK(number == 7);
  CHECK(text == "a text that is too long for a small string");
  CHECK(handled::count() == 3);
}

TEST_CASE("copies have other addresses than the frame of any invocation") {
  check_addresses<>();
  check_addresses<int>(1);
  check_addresses<long double>(1.5L);
  check_addresses<char, double, void *>('a', 1.5, nullptr);
  check_addresses<int, std::string>(1, "text");
  check_addresses<const std::vector<int> &>(std::vector<int>{1});
  struct alignas(64) wide {
    int value;
  };
  check_addresses<wide>(wide{1});
}

TEST_CASE("a copy is known by its address, not by what its bytes say") {
  const handled exceptions;
  mcast::signal<void()> s{mcast::replay(1)};
  s();
  seen late;
  late.add(s);
  s.clear();
  s.add(+[] { throw std::runtime_error("copy"); });
  CHECK(handled::count() == 1);
  multicast_delegate delegate = {nullptr, nullptr};
  s.enumerate([&](const multicast_registration &each) { delegate = each.delegate; });
  // Imitate a payload that was copied from an invalid stack. All pointers in the payload point to
  // the payload itself.
  alignas(16) std::array<void *, 16> bytes;
  bytes.fill(bytes.data());
  REQUIRE(late.size > 0);
  REQUIRE(late.size <= sizeof bytes);
  delegate.function(delegate.context, 0, bytes.data(), late.size);
  CHECK(handled::count() == 2);
  for (const void *each : bytes) CHECK(each == bytes.data());
}

// ---- Exceptions -----------------------------------------------------------------------------

TEST_CASE("what a delegate throws in a replay goes to the handler") {
  const handled exceptions;
  mcast::signal<void(int)> s{mcast::replay(2)};
  s(1);
  s(2);
  int calls = 0;
  const mcast::registration r = s.add([&](int) {
    ++calls;
    throw std::runtime_error("replay");
  });
  CHECK(r.is_valid());
  CHECK(calls == 2);
  CHECK(handled::count() == 2);
  CHECK_THROWS_AS(s(3), std::runtime_error);
  CHECK(handled::count() == 2);
}

TEST_CASE("what was waited for is not waited for when it is replayed") {
  const handled exceptions;
  mcast::queue q;
  mcast::signal<void(int)> plain{mcast::replay(1)};
  mcast::signal<void(std::string)> owning{mcast::replay(1)};
  CHECK(plain.invoke_and_wait(1).called == 0);
  CHECK(owning.invoke_and_wait("text").called == 0);
  plain.add([](int) { throw std::runtime_error("direct"); });
  owning.add([](const std::string &) { throw std::runtime_error("direct"); });
  CHECK(handled::count() == 2);
  plain.add([](int) { throw std::runtime_error("queued"); }, mcast::on(q));
  owning.add([](const std::string &) { throw std::runtime_error("queued"); }, mcast::on(q));
  CHECK(q.run() == 2);
  CHECK(handled::count() == 4);
  // Replays also work after an invocation that has thrown an exception.
  owning.clear();
  owning.add([](const std::string &) { throw std::runtime_error("direct"); }, mcast::no_replay);
  CHECK_THROWS_AS(owning.invoke_and_wait("more"), std::runtime_error);
  owning.add([](const std::string &) { throw std::runtime_error("queued"); }, mcast::on(q));
  CHECK(q.run() == 1);
  CHECK(handled::count() == 5);
}

TEST_CASE("what was waited for too long goes to the handler in a replay") {
  using namespace std::chrono_literals;
  const handled exceptions;
  mcast::queue late, q;
  mcast::signal<void(int)> plain{mcast::replay(1)};
  mcast::signal<void(std::string)> owning{mcast::replay(1)};
  plain.add([](int) { throw std::runtime_error("late"); }, mcast::on(late));
  owning.add([](const std::string &) { throw std::runtime_error("late"); }, mcast::on(late));
  owning.add([](const std::string &) { throw std::runtime_error("late"); },
             mcast::on(late) | mcast::once);
  CHECK(plain.invoke_and_wait_for(1ms, 1).unfinished == 1);
  CHECK(owning.invoke_and_wait_for(1ms, "text").unfinished == 2);
  plain.add([](int) { throw std::runtime_error("queued"); }, mcast::on(q));
  owning.add([](const std::string &) { throw std::runtime_error("queued"); }, mcast::on(q));
  CHECK(q.run() == 2);
  CHECK(handled::count() == 2);
  CHECK(late.run() == 3);
  CHECK(handled::count() == 2);
}

TEST_CASE("what was waited for too long is lost, also if it had begun") {
  using namespace std::chrono_literals;
  const handled exceptions;
  mcast::queue q;
  mcast::signal<void(std::string)> s;
  gate entered, let_go;
  s.add([&](const std::string &) {
    entered.open();
    let_go.wait();
    throw std::runtime_error("late");
  }, mcast::on(q) | mcast::once);
  s.add([&](const std::string &) { entered.wait(); });
  std::thread runner([&] {
    while (q.run() == 0) std::this_thread::yield();
  });
  CHECK(s.invoke_and_wait_for(1ms, "text").unfinished == 1);
  let_go.open();
  runner.join();
  CHECK(handled::count() == 0);
}

TEST_CASE("an argument that cannot be copied is not replayed") {
  struct stubborn {
    bool is_copied;
    explicit stubborn(bool is_good) : is_copied(is_good) {}
    stubborn(const stubborn &other) : is_copied(other.is_copied) {
      if (!is_copied) throw 5;
    }
  };
  mcast::signal<void(const stubborn &)> s{mcast::replay(2)};
  int calls = 0;
  s.add([&](const stubborn &) { ++calls; });
  CHECK_THROWS_AS(s(stubborn(false)), int);
  CHECK(calls == 0);
  s(stubborn(true));
  CHECK(calls == 1);
  s.add([&](const stubborn &) { calls += 10; });
  CHECK(calls == 11);
}

TEST_CASE("a signal that cannot keep its arguments has no replays") {
  mcast::policies how;
  how.replay = 1;
  CHECK(failure([&] { const mcast::signal<void(int &)> s{how}; }) ==
        MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK(failure([&] { const mcast::signal<void(std::unique_ptr<int>)> s{how}; }) ==
        MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK(failure([&] { const mcast::signal<int()> s{how}; }) == MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK(failure([&] { const mcast::signal<void(int)> s{how}; }) == MULTICAST_OK);
}

// ---- Buffered invocations -------------------------------------------------------------------

TEST_CASE("each invocation makes one copy, which is destroyed once") {
  counted::reset();
  std::vector<int> got;
  const auto take = [&](const counted &c, int) { got.push_back(c.number); };
  {
    mcast::signal<void(counted, int)> s{mcast::replay(2)};
    mcast::queue q;
    s.add(take);
    s.add(take, mcast::on(q));
    const counted given(1);
    s(given, 0);
    CHECK(counted::copies == 1);
    s(counted(2), 0);
    CHECK(counted::copies == 1);
    CHECK(counted::moves == 1);
    CHECK(got == std::vector<int>{1, 2});
    CHECK(counted::alive == 3);
    s(counted(3), 0);
    CHECK(counted::alive == 4);  // 1 is in the queue
    CHECK(q.run() == 3);
    CHECK(counted::alive == 3);
    got.clear();
    s.add(take);
    s.add(take, mcast::on(q));
    CHECK(got == std::vector<int>{2, 3});
    CHECK(counted::copies == 1);
    CHECK(counted::moves == 2);
    s(counted(4), 0);
    s(counted(5), 0);
    CHECK(counted::alive == 5);  // 2 and 3 are in the queue
    CHECK(q.run() == 6);
    CHECK(counted::alive == 3);
    // If an invocation is dropped while it is being replayed, its arguments live until the call
    // returns.
    got.clear();
    s.add([&](const counted &c, int depth) {
      if (got.empty()) {
        s(counted(6), depth);
        s(counted(7), depth);
        s(counted(8), depth);
      }
      got.push_back(c.number);
    });
    CHECK(std::count(got.begin(), got.end(), 4) == 1);
    CHECK(counted::copies == 1);
  }
  CHECK(counted::alive == 0);
}

TEST_CASE("replaced arguments live as long as their invocation") {
  counted::reset();
  mcast::signal<void(counted, int)> s{mcast::replay(1)};
  std::vector<int> got;
  s.add([&](const counted &c, int depth) {
    if (depth < 3) s(counted(c.number + 1), depth + 1);
    got.push_back(c.number);
  });
  s.add([&](const counted &c, int) { got.push_back(c.number); });
  s(counted(10), 0);
  CHECK(got == std::vector<int>{13, 13, 12, 12, 11, 11, 10, 10});
  CHECK(counted::copies == 0);
  CHECK(counted::alive == 1);
}

TEST_CASE("a signal destroyed in a replay lets go of what it kept") {
  counted::reset();
  int calls = 0;
  auto s = std::make_unique<mcast::signal<void(const counted &)>>(mcast::replay(3));
  for (int i = 0; i < 3; ++i) (*s)(counted(i));
  CHECK(counted::alive == 3);
  s->add([&](const counted &c) {
    ++calls;
    s.reset();
    CHECK(c.number == 0);
  });
  CHECK(calls == 1);
  CHECK(counted::alive == 0);
}

TEST_CASE("what is kept is known where the argument is only declared") {
  mcast::signal<void(const replayed &)> s{mcast::replay(1)};
  std::string text;
  invoke_replayed(s, {"text"});
  s.add([&](const replayed &argument) { text = argument.text; });
  CHECK(text == "text");
}

TEST_CASE("each delegate gets each invocation once, beside threads") {
  constexpr size_t invokers = 2, each = 300, delegates = 24;
  struct counts {
    std::array<std::atomic<int>, invokers * each> all{};
  };
  mcast::signal<void(size_t)> plain{mcast::replay(invokers * each)};
  mcast::signal<void(const std::string &)> owning{mcast::replay(invokers * each)};
  std::vector<counts> of_plain(delegates), of_owning(delegates);
  std::atomic<size_t> invoked{0};
  const auto invoke = [&](size_t first) {
    for (size_t i = first; i < first + each; ++i) {
      plain(i);
      owning(std::string(40, '0') + std::to_string(i));
      ++invoked;
    }
  };
  const auto add = [&](size_t first) {
    for (size_t i = first; i < delegates; i += 2) {
      // Add some delegates before all invocations, some after all invocations, and most in between.
      while (invoked < i * invokers * each / delegates) std::this_thread::yield();
      plain.add([&mine = of_plain[i]](size_t n) { ++mine.all.at(n); });
      owning.add([&mine = of_owning[i]](const std::string &text) {
        ++mine.all.at(std::stoul(text));
      });
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 0; i < invokers; ++i) threads.emplace_back(invoke, i * each);
  threads.emplace_back(add, size_t{0});
  threads.emplace_back(add, size_t{1});
  for (std::thread &thread : threads) thread.join();
  for (size_t i = 0; i < delegates; ++i) {
    for (size_t n = 0; n < of_plain[i].all.size(); ++n) {
      CAPTURE(i);
      CAPTURE(n);
      REQUIRE(of_plain[i].all.at(n) == 1);
      REQUIRE(of_owning[i].all.at(n) == 1);
    }
  }
}

}  // namespace replay_tests
