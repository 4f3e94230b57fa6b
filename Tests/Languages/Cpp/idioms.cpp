// Tests the tables in the guide, include/multicast/README.md. The tables list idioms of other
// libraries and their equivalents in this library.
#include "test.hpp"

#include <array>

#include <multicast/dispatcher.hpp>
#include <multicast/groups.hpp>
#include <multicast/slot.hpp>

namespace idioms_tests {

int called;
void function(int n) { called += n; }

struct receiver : mcast::observer {
  void slot(int n) { called += n; }
  ~receiver() { stop_observing(); }
};
struct plain {
  void slot(int n) { called += n; }
};
struct fixture {
  mcast::signal<void(int)> sig;
  plain object;
  fixture() { called = 0; }
};

// ---- The example of the guide -----------------------------------------------------------------

struct Window {
  std::string title;
  void rename(int, const std::string &name) { title = name; }
};

int redrawn;
bool is_closed;
void redraw(int id) { redrawn += id; }
void close() { is_closed = true; }

TEST_CASE("the example of the guide") {
  const auto window = std::make_shared<Window>();
#include "example.inc"  // generated from the guide, in the directory of tests.cpp
  CHECK(window->title == "Ada");
  CHECK(redrawn == 1);
  loop.run();
  CHECK(is_closed);
  CHECK(r);
}

// ---- Boost.Signals2 ---------------------------------------------------------------------------

TEST_CASE_FIXTURE(fixture, "Boost: connect, disconnect, connected, num_slots, empty") {
  const mcast::registration c = sig.add(&function);  // sig.connect(&function)
  sig(1);
  CHECK(c.is_valid());       // c.connected()
  CHECK(sig.size() == 1);   // sig.num_slots()
  c.remove();               // c.disconnect(), which does not wait
  CHECK(sig.empty());
  sig.add(&function);
  sig.remove(&function);    // sig.disconnect(&function)
  sig.add(&function);
  sig.clear();              // sig.disconnect_all_slots()
  sig(1);
  CHECK(called == 1);
}

TEST_CASE_FIXTURE(fixture, "Boost: scoped_connection, shared_connection_block") {
  mcast::scoped_registration c = sig.add(&function);  // scoped_connection
  {
    const mcast::scoped_pause block(c);  // shared_connection_block
    sig(1);
  }
  sig(1);
  CHECK(called == 1);
}

TEST_CASE_FIXTURE(fixture, "Boost: tracking") {
  auto shared = std::make_shared<plain>();
  sig.add(shared, &plain::slot);  // slot(&plain::slot, shared.get(), _1).track(shared)
  sig.add(mcast::tracked([](int n) { called += n; }, shared));  // .track_foreign(shared)
  shared.reset();
  sig(1);
  CHECK(called == 0);
  CHECK(sig.empty());
}

TEST_CASE("eventpp: dispatchers, processUntil(), counters, workers") {
  mcast::dispatcher<std::string, void(int)> events;
  int sum = 0;
  const mcast::registration h = events.add("opened", [&](int i) { sum += i; });
  events("opened", 3);
  CHECK(sum == 3);
  CHECK(events.size("opened") == 1);
  h.remove();
  CHECK(events.size("opened") == 0);

  mcast::queue loop;
  int processed = 0;
  for (int i = 0; i < 4; ++i) loop.post([&] { ++processed; });
  loop.run(1);                                            // processOne()
  loop.run_while([&] { return !(processed == 3); });      // processUntil()
  CHECK(processed == 3);
  CHECK(loop.clear() == 1);                               // clearEvents()

  mcast::signal<void()> s;
  int counted = 0;
  s.add(mcast::times(3, [&] { ++counted; }));             // counterRemover(s).append(f, 3)
  for (int i = 0; i < 5; ++i) s();
  CHECK(counted == 3);

  std::array<mcast::queue, 4> pool;
  for (auto &each : pool) each.start();
  std::atomic<int> jobs{0};
  for (size_t next = 0; next < 40; ++next) pool[next % pool.size()].post([&] { ++jobs; });
  for (auto &each : pool) each.post_and_wait([] {});
  CHECK(jobs == 40);
}

TEST_CASE("Boost: combiners, connect_extended, at_front") {
  mcast::signal<int(int)> sig;
  sig.add([](int n) { return n; });
  sig.add([](int n) { return 2 * n; });
  CHECK(*sig(3) == 6);                                       // optional_last_value
  CHECK(sig.collect(3) == std::vector<int>{3, 6});           // a combiner with a container
  CHECK(sig.fold(0, [](int a, int b) { return a > b ? a : b; }, 3) == 6);  // maximum
  sig.add([](int) { return 0; }, mcast::at_front);  // connect(f, at_front)
  CHECK(sig.collect(1).front() == 0);
  sig.add_extended([](mcast::registration c, int n) {        // connect_extended
    c.remove();
    return 10 * n;
  });
  CHECK(*sig(3) == 30);
  CHECK(*sig(3) == 6);
}

// ---- sigslot ----------------------------------------------------------------------------------

TEST_CASE_FIXTURE(fixture, "sigslot: connect, disconnect methods and objects, observer") {
  sig.add(&object, &plain::slot);     // sig.connect(&plain::slot, &object)
  sig.remove(&object, &plain::slot);  // sig.disconnect(&plain::slot, &object)
  sig.add(&object, &plain::slot);
  sig.remove_object(&object);         // sig.disconnect(&object)
  {
    receiver r;                       // struct receiver : sigslot::observer
    sig.add(&r, &receiver::slot);
    sig(1);
  }
  sig(1);
  CHECK(called == 1);
}

TEST_CASE_FIXTURE(fixture, "sigslot: block a signal, groups, connect_scoped") {
  sig.add(function);
  {
    const mcast::scoped_pause blocked(sig);  // sig.block() and sig.unblock()
    sig(1);
  }
  std::string order;
  mcast::groups<int> groups;
  sig.add([&](int) { order += 'b'; }, groups.in(1));  // connect(f, 1): a group
  sig.add([&](int) { order += 'a'; }, groups.in(0));  // connect(f, 0)
  sig.add([&](int) { order += 'c'; }, groups.in(2));
  groups.remove(2);                                   // disconnect(2)
  {
    const mcast::scoped_registration c = sig.add(function);  // connect_scoped
  }
  sig(1);
  CHECK(called == 1);
  CHECK(order == "ab");
}

// ---- Qt ---------------------------------------------------------------------------------------

TEST_CASE_FIXTURE(fixture, "Qt: connections of objects, with a context, unique, once") {
  {
    receiver r;                                          // a QObject
    sig.add(&r, &receiver::slot);                        // connect(s, &S::sig, &r, &receiver::slot)
    sig.add(&r, [](int n) { called += n; });             // connect(s, &S::sig, &r, lambda)
    sig.add(&r, &receiver::slot, mcast::unique);         // Qt::UniqueConnection
    sig.add(&r, &receiver::slot, mcast::once);           // Qt::SingleShotConnection
    sig(1);
    sig(1);
  }
  CHECK(called == 5);
  CHECK(sig.empty());
}

TEST_CASE("Qt: queued and blocking connections, invokeMethod, a blocker") {
  mcast::signal<void(std::string)> sig;
  mcast::queue loop;
  std::string text;
  const mcast::registration c =
      sig.add([&](const std::string &t) { text += t; }, mcast::on(loop));  // Qt::QueuedConnection
  sig("a");
  CHECK(text.empty());
  loop.run();
  loop.start();
  sig.invoke_and_wait("b");                   // Qt::BlockingQueuedConnection
  CHECK(text == "ab");
  loop.post([&] { text += 'c'; });            // QMetaObject::invokeMethod(o, f)
  CHECK(loop.post_and_wait([&] { return text.size(); }) == 3);  // Qt::BlockingQueuedConnection
  {
    const mcast::scoped_pause blocker(sig);   // QSignalBlocker
    sig("d");
  }
  c.remove();                                 // QObject::disconnect(c)
}

// ---- libsigc++ --------------------------------------------------------------------------------

TEST_CASE_FIXTURE(fixture, "libsigc++: mem_fun, ptr_fun, bind, emit, trackable, block") {
  {
    receiver r;                                        // a sigc::trackable
    sig.add(r, &receiver::slot);                       // sigc::mem_fun(r, &receiver::slot)
    sig.add(function);                                 // sigc::ptr_fun(&function)
    const int bound = 10;
    const mcast::registration c = sig.add([=](int n) { called += n + bound; });  // sigc::bind
    sig.invoke(1);                                     // sig.emit(1)
    CHECK(called == 13);
    c.pause();                                         // c.block()
    sig(1);
    c.resume();                                        // c.unblock()
    CHECK(called == 15);
  }
  CHECK(sig.size() == 2);
  mcast::signal<int()> answers;
  answers.add([] { return 2; });
  answers.add([] { return 3; });
  CHECK(answers.fold(1, std::multiplies<int>()) == 6);  // signal<int()>::accumulated<product>
}

TEST_CASE("Boost: a combiner") {
  struct product {  // written as for Boost.Signals2
    int operator()(mcast::result_range<int()>::iterator i,
                   mcast::result_range<int()>::iterator end) const {
      int result = 1;
      while (i != end) result *= *i++;
      return result;
    }
  };
  mcast::signal<int()> sig;
  sig.add([] { return 2; });
  sig.add([] { return 3; });
  CHECK(sig.combine(product()) == 6);  // signal<int(), product>
}

TEST_CASE("the names of other libraries are beside ours") {
  struct window {
    int calls = 0;
    void hear(int n) { calls += n; }
  };
  mcast::signal<void(int)> sig;
  mcast::queue loop;
  window w;
  int sum = 0;
  const auto count = [&sum](int n) { sum += n; };
  mcast::connection c = sig.connect(count);
  sig.connect(&window::hear, &w);
  sig.connect<&window::hear>(w, mcast::on(loop));
  const mcast::slot<void(int)> f = [&sum](int n) { sum += 100 * n; };
  {
    const mcast::scoped_connection scoped = sig.connect(f, mcast::priority(1));
    sig(1);
  }
  sig(1);
  CHECK(sum == 102);
  CHECK(w.calls == 2);
  CHECK(loop.run() == 2);
  CHECK(c.connected());
  c.disconnect();
  CHECK_FALSE(c.connected());
  sig.connect(count);
  sig.disconnect(count);
  sig.disconnect(&w, &window::hear);
  sig.disconnect<&window::hear>(w);
  CHECK(sig.empty());
}

}  // namespace idioms_tests
