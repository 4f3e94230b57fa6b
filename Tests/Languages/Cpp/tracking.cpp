// Tests delegates that are removed when their objects are destroyed.
#include <cstdlib>
#include <new>

#include "test.hpp"

// Counts this thread's calls to operator new, in all files of the program.
static thread_local size_t allocations = 0;

void *operator new(size_t size, const std::nothrow_t &) noexcept {
  ++allocations;
  return std::malloc(size);
}
void *operator new(size_t size) {
  void *const made = ::operator new(size, std::nothrow);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}
void operator delete(void *object) noexcept { std::free(object); }
void operator delete(void *object, size_t) noexcept { std::free(object); }
void operator delete(void *object, const std::nothrow_t &) noexcept { std::free(object); }

namespace elsewhere {
// Imitates another library's smart pointer.
struct owner {
  std::shared_ptr<int> shared;
};
struct weak_owner {
  std::weak_ptr<int> weak;
  std::shared_ptr<int> lock() const { return weak.lock(); }
};
weak_owner to_weak(const owner &o) { return {o.shared}; }
}  // namespace elsewhere

TEST_CASE("a callable is gone the moment one of its objects dies") {
  mcast::signal<void(int)> s;
  auto a = std::make_shared<int>(1);
  auto b = std::make_shared<std::string>("b");
  int sum = 0;
  const mcast::registration r =
      s.add(mcast::tracked([&](int n) { sum += n; }, a, std::weak_ptr<std::string>(b)));
  CHECK(a.use_count() == 1);
  s(1);
  CHECK(sum == 1);
  CHECK(r.is_valid());
  CHECK(s.size() == 1);
  SUBCASE("for is_valid()") {
    b.reset();
    CHECK_FALSE(r.is_valid());
    CHECK_FALSE(r);
  }
  SUBCASE("for size()") {
    a.reset();
    CHECK(s.size() == 0);
    CHECK(s.empty());
  }
  SUBCASE("for the next call") {
    a.reset();
    CHECK(s.invoke(2) == 0);
  }
  CHECK(sum == 1);
}

TEST_CASE("objects live while their delegate runs") {
  mcast::signal<void()> s;
  auto object = std::make_shared<int>(4);
  const std::weak_ptr<int> weak = object;
  s.add(mcast::tracked([&] {
    object.reset();
    CHECK_FALSE(weak.expired());
  }, object));
  s();
  CHECK(weak.expired());
  CHECK(s.empty());
}

TEST_CASE("a pointer of another library is tracked by its to_weak()") {
  mcast::signal<void()> s;
  elsewhere::owner object{std::make_shared<int>(0)};
  int calls = 0;
  s.add(mcast::tracked([&] { ++calls; }, object));
  s.add(object, [&] { ++calls; });
  s();
  CHECK(calls == 2);
  CHECK(s.remove_object(object) == 1);
  s.add(object, [&] { ++calls; });
  object.shared.reset();
  CHECK(s.size() == 0);
  CHECK(s.remove_object(object) == 0);
}

namespace {
struct listener {
  int sum = 0;
  void hear(int n) { sum += n; }
};
struct watcher : mcast::observer {
  int sum = 0;
  void hear(int n) { sum += n; }
  void watch(mcast::signal<void(int)> &s) {
    s.add(this, &watcher::hear);
    s.add<&watcher::hear>(this);
    s.add(*this, [this](int n) { sum += n; });
  }
  ~watcher() { stop_observing(); }
};

TEST_CASE("is_valid() finds what is dead, paused, and called once") {
  mcast::signal<void()> s;
  auto object = std::make_shared<int>();
  const auto other = std::make_shared<int>();
  const mcast::registration paused = s.add(object, [] {});
  const mcast::registration once = s.add(object, [] {}, mcast::once);
  const mcast::registration plain = s.add(mcast::tracked([] {}, object));
  const mcast::registration lives = s.add(other, [] {}, mcast::once);
  paused.pause();
  for (const mcast::registration each : {paused, once, plain, lives}) CHECK(each.is_valid());
  object.reset();
  SUBCASE("plain") { CHECK_FALSE(plain.is_valid()); }
  SUBCASE("paused") { CHECK_FALSE(paused.is_valid()); }
  SUBCASE("once") { CHECK_FALSE(once.is_valid()); }
  CHECK(lives.is_valid());
  CHECK(s.invoke() == 1);  // is_valid() does not count as a call
}

TEST_CASE("what owns something lives, and may point to nothing") {
  struct receiver {
    void hear() {}
  };
  mcast::signal<void()> s;
  int calls = 0;
  std::shared_ptr<receiver> nothing(static_cast<receiver *>(nullptr), [](receiver *) {});
  s.add(mcast::tracked([&calls] { ++calls; }, nothing));
  s.add(nothing, [&calls] { ++calls; });
  s();
  CHECK(calls == 2);
  CHECK(s.size() == 2);
  CHECK(failure([&] { s.add(nothing, &receiver::hear); }) == MULTICAST_ERROR_INVALID_ARGUMENT);
  CHECK(failure([&] { s.add<&receiver::hear>(nothing); }) == MULTICAST_ERROR_INVALID_ARGUMENT);
  nothing.reset();
  CHECK(s.empty());
  s();
  CHECK(calls == 2);
}
}  // namespace

TEST_CASE("a shared pointer is held weakly") {
  mcast::signal<void(int)> s;
  auto object = std::make_shared<listener>();
  int calls = 0;
  s.add(object, &listener::hear);
  s.add(object, [&](int) { ++calls; });
  CHECK(object.use_count() == 1);
  s(3);
  CHECK(object->sum == 3);
  CHECK(calls == 1);
  object.reset();
  CHECK(s.size() == 0);
}

TEST_CASE("a dead object's call that waits in a queue is not made") {
  mcast::signal<void(std::string)> s;
  mcast::queue q;
  auto object = std::make_shared<int>();
  int calls = 0;
  s.add(mcast::tracked([&](const std::string &) { ++calls; }, object), mcast::on(q));
  s("text");
  q.run();
  s("text");
  object.reset();
  CHECK(q.run() == 0);
  CHECK(calls == 1);
}

TEST_CASE("an observer ends with all of its registrations") {
  mcast::signal<void(int)> s, other;
  {
    watcher w;
    w.watch(s);
    other.add(&w, &watcher::hear);
    CHECK(w.count() == 4);
    s(2);
    CHECK(w.sum == 6);
    const watcher copy = w;
    CHECK(copy.count() == 0);
    const mcast::lifetime plugin;
    CHECK(failure([&] { s.add(&w, &watcher::hear, mcast::under(plugin)); }) ==
          MULTICAST_ERROR_INVALID_ARGUMENT);
  }
  CHECK(s.empty());
  CHECK(other.empty());
}

TEST_CASE("the end of an observer waits for a call on another thread") {
  mcast::signal<void(int)> s;
  auto w = std::make_unique<watcher>();
  gate entered, let_go;
  std::atomic<bool> has_left{false};
  s.add(*w, [&](int) {
    entered.open();
    let_go.wait();
    has_left = true;
  });
  std::thread invokes([&] { s(1); });
  entered.wait();
  std::thread opens([&] { let_go.open(); });
  w.reset();
  CHECK(has_left);
  invokes.join();
  opens.join();
}

namespace {
struct stopper : watcher {
  using mcast::observer::stop_observing;
};
}  // namespace

TEST_CASE("an observer removes a method known at compile time") {
  mcast::signal<void(int)> s, other;
  mcast::registration last;
  {
    stopper w;
    const mcast::registration first = s.add<&watcher::hear>(w);
    CHECK(w.count() == 1);
    first.remove();
    CHECK(w.count() == 0);
    s.add<&watcher::hear>(w);
    last = other.add<&watcher::hear>(w);
    CHECK(w.count() == 2);
    w.stop_observing();
    CHECK(w.count() == 0);
    CHECK(s.empty());
    s.add<&watcher::hear>(w);
    last = other.add<&watcher::hear>(w);
  }
  CHECK(s.empty());
  CHECK_FALSE(last.is_valid());
}

TEST_CASE("the end of an observer waits for a method removed before") {
  struct sleeper : mcast::observer {
    const std::function<void()> *sleep = nullptr;
    void hear(int) { (*sleep)(); }
    ~sleeper() { stop_observing(); }
  };
  mcast::signal<void(int)> s, other;
  auto w = std::make_unique<sleeper>();
  gate entered, let_go;
  std::atomic<bool> has_left{false};
  const std::function<void()> sleep = [&] {
    entered.open();
    let_go.wait();
    has_left = true;
  };
  w->sleep = &sleep;
  const mcast::registration r = s.add<&sleeper::hear>(*w);
  std::thread invokes([&] { s(1); });
  entered.wait();
  CHECK(r.remove_nowait() == MULTICAST_PENDING);
  SUBCASE("alone") {}
  SUBCASE("beside a later one") { other.add<&sleeper::hear>(*w); }
  std::thread opens([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    let_go.open();
  });
  w.reset();
  CHECK(has_left);
  invokes.join();
  opens.join();
  CHECK(other.empty());
}

TEST_CASE("an observer is destroyed by a call before its add returns") {
  struct once : mcast::observer {
    void hear(int) { delete this; }
  };
  mcast::policies how;
  how.replay = 1;
  mcast::signal<void(int)> s(how);
  s(1);
  const mcast::registration r = s.add<&once::hear>(*new once);
  CHECK(r.token().id != 0);
  CHECK_FALSE(r.is_valid());
  CHECK(s.empty());
}

TEST_CASE("an observer is destroyed by a thread while another adds it") {
  struct once : mcast::observer {
    std::atomic<bool> &is_gone;
    explicit once(std::atomic<bool> &gone) : is_gone(gone) {}
    void hear(int) {
      std::atomic<bool> &gone = is_gone;
      delete this;
      gone = true;
    }
  };
  mcast::signal<void(int)> s;
  std::atomic<bool> is_over{false};
  std::thread invokes([&] {
    while (!is_over) s(1);
  });
  bool is_right = true;
  for (int round = 0; round < 200 && is_right; ++round) {
    std::atomic<bool> is_gone{false};
    const mcast::registration r = s.add<&once::hear>(*new once(is_gone));
    while (!is_gone) std::this_thread::yield();
    is_right = r.token().id != 0 && !r.is_valid();
  }
  is_over = true;
  invokes.join();
  CHECK(is_right);
  CHECK(s.empty());
}

TEST_CASE("an observer is added to another signal during its add") {
  struct twice : mcast::observer {
    mcast::signal<void(int)> *other = nullptr;
    size_t before = 0, after = 0;
    void hear(int) {
      before = count();
      other->add<&twice::ignore>(*this);
      after = count();
    }
    void ignore(int) {}
  };
  mcast::policies how;
  how.replay = 1;
  mcast::signal<void(int)> s(how), other;
  s(1);
  {
    twice w;
    w.other = &other;
    s.add<&twice::hear>(w);
    CHECK(w.before == 1);
    CHECK(w.after == 2);
    CHECK(w.count() == 2);
    CHECK(other.size() == 1);
  }
  CHECK(s.empty());
  CHECK(other.empty());
}

TEST_CASE("the first method of an observer needs no allocation") {
  mcast::signal<void(int)> s;
  const size_t before = allocations;
  {
    watcher w;
    s.add<&watcher::hear>(w);
    s(1);
    CHECK(w.sum == 1);
  }
  {
    watcher w;
    s.add<&watcher::hear>(w).remove();
    s.add<&watcher::hear>(w);
  }
  CHECK(allocations == before);
  CHECK(s.empty());
}

TEST_CASE("an observer is added by two threads, and stops meanwhile") {
  mcast::signal<void(int)> s, other;
  for (int round = 0; round < 200; ++round) {
    stopper w;
    std::thread adds([&] { s.add<&watcher::hear>(w); });
    // An add fails if the observer's lifetime ends during the add, so only even rounds end the
    // lifetime. Odd rounds test two adds at the same time.
    if (round % 2 == 0) {
      w.stop_observing();
    } else {
      other.add<&watcher::hear>(w);
    }
    adds.join();
    w.stop_observing();
    CHECK(w.count() == 0);
    CHECK(s.empty());
    CHECK(other.empty());
  }
}

TEST_CASE("objects may die while other threads invoke") {
  for (int round = 0; round < 100; ++round) {
    mcast::signal<void(int)> s;
    auto object = std::make_shared<listener>();
    const mcast::registration r = s.add(object, &listener::hear);
    std::atomic<bool> is_over{false};
    std::thread invokes([&] {
      while (!is_over) s(1);
    });
    object.reset();
    is_over = true;
    invokes.join();
    CHECK_FALSE(r.is_valid());
  }
}

TEST_CASE("a method known at compile time holds a shared object weakly") {
  struct listener {
    int sum = 0;
    void hear(int n) { sum += n; }
  };
  mcast::signal<void(int)> s;
  mcast::queue q;
  auto object = std::make_shared<listener>();
  s.add<&listener::hear>(object);
  s.add<&listener::hear>(std::shared_ptr<listener>(object), mcast::on(q));
  s(1);
  CHECK(q.run() == 1);
  CHECK(object->sum == 2);
  CHECK(s.remove<&listener::hear>(object) == MULTICAST_OK);
  CHECK(s.empty());
  s.add<&listener::hear>(std::weak_ptr<listener>(object));
  object.reset();
  s(1);
  CHECK(s.empty());
}

TEST_CASE("the object may be of no type") {
  mcast::signal<void()> s;
  int calls = 0;
  std::shared_ptr<void> token = std::make_shared<int>();
  s.add(token, [&] { ++calls; });
  s.add(std::weak_ptr<void>(token), [&] { ++calls; });
  s();
  CHECK(calls == 2);
  CHECK(s.remove_object(token) == 2);
  s.add(token, [&] { ++calls; });
  token.reset();
  s();
  CHECK(calls == 2);
}

TEST_CASE("a class derived from a shared or weak pointer is held weakly") {
  struct shared : std::shared_ptr<int> {
    using std::shared_ptr<int>::shared_ptr;
  };
  struct weak : std::weak_ptr<int> {
    using std::weak_ptr<int>::weak_ptr;
  };
  shared object(new int(1));
  const weak seen(object);
  mcast::signal<void()> s;
  int calls = 0;
  s.add(object, [&calls] { ++calls; });
  s.add(seen, [&calls] { ++calls; });
  s.add(mcast::tracked([&calls] { ++calls; }, object, seen));
  CHECK(s.invoke() == 3);
  CHECK(calls == 3);
  object.reset();
  CHECK(s.empty());
}
