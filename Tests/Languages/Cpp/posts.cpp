// Tests queue::post, queue::post_and_wait and signal::invoke_and_wait.
#include "test.hpp"

TEST_CASE("what is posted is called once, in order, and destroyed") {
  mcast::queue q;
  std::string text;
  const auto witness = std::make_shared<int>();
  CHECK(q.post([&text, witness] { text += 'a'; }));
  CHECK(q.post([&text, owned = std::make_unique<char>('b')] { text += *owned; }));
  const std::function<void()> copied = [&text] { text += 'c'; };
  CHECK(q.post(copied));
  CHECK(text.empty());
  CHECK(q.run() == 3);
  CHECK(text == "abc");
  CHECK(witness.use_count() == 1);
}

TEST_CASE("a queue runs while a condition holds") {
  mcast::queue q;
  int called = 0;
  for (int i = 0; i < 5; ++i) q.post([&] { ++called; });
  CHECK(q.run_while([&] { return called < 3; }) == 3);
  CHECK(called == 3);
  CHECK(q.statistics().pending == 2);
  CHECK(q.run_while([] { return false; }) == 0);
  q.post([&] { q.post([&] { ++called; }); });
  CHECK(q.run_while([] { return true; }) == 4);
  CHECK(called == 6);
  // Only this thread runs the queue. If a queued call waits for another queued call, no other
  // thread can make that call, so the waiting call makes it.
  q.post([&] { called = q.post_and_wait([] { return 100; }); });
  CHECK(q.run_while([] { return true; }) >= 1);
  CHECK(called == 100);
}

TEST_CASE("a queue that runs while a condition holds may be destroyed") {
  auto q = std::make_unique<mcast::queue>();
  mcast::queue &run = *q;
  bool is_over = false;
  run.post([&] {
    q.reset();
    is_over = true;
  });
  CHECK(run.run_while([&] { return !is_over; }) == 1);
}

TEST_CASE("what is posted and not called is destroyed") {
  const auto witness = std::make_shared<int>();
  {
    mcast::queue q(1);
    CHECK(q.post([witness] {}));
    CHECK_FALSE(q.post([witness] {}));
    CHECK(witness.use_count() == 2);
  }
  CHECK(witness.use_count() == 1);
  mcast::queue q(1, mcast::overflow::drop_oldest);
  int called = 0;
  CHECK(q.post([&called, witness] { called = 1; }));
  CHECK(q.post([&called] { called = 2; }));
  CHECK(witness.use_count() == 1);
  q.run();
  CHECK(called == 2);
}

TEST_CASE("what is posted may throw, and may destroy the queue") {
  const handled expected;
  auto q = std::make_unique<mcast::queue>();
  q->post([] { throw 1; });
  q->run();
  CHECK(handled::count() == 1);
  q->post([&q] { q.reset(); });
  q->run();
  CHECK(q == nullptr);
}

TEST_CASE("what is posted and waited for returns a value or a reference") {
  mcast::queue q;
  q.start();
  const std::thread::id here = std::this_thread::get_id();
  int number = 4;
  CHECK(q.post_and_wait([&] { return std::this_thread::get_id() != here; }));
  CHECK(&q.post_and_wait([&]() -> int & { return number; }) == &number);
  CHECK(*q.post_and_wait([] { return std::make_unique<int>(5); }) == 5);
  q.post_and_wait([&] { ++number; });
  CHECK(number == 5);
  std::string text = "what is long is taken from the variable";
  const std::string taken = q.post_and_wait([&]() -> std::string && { return std::move(text); });
  CHECK(taken == "what is long is taken from the variable");
  CHECK(text.empty());
}

TEST_CASE("an exception travels to the one that waits") {
  mcast::queue q;
  q.start();
  try {
    q.post_and_wait([]() -> int { throw std::runtime_error("mine"); });
    FAIL("nothing was thrown");
  } catch (const std::runtime_error &error) {
    CHECK(std::string(error.what()) == "mine");
  }
  CHECK(q.post_and_wait([] { return 1; }) == 1);
}

TEST_CASE("the thread of the queue makes the calls before it waits") {
  mcast::queue q;
  std::string text;
  q.run();
  q.post([&] { text += 'a'; });
  q.post_and_wait([&] { text += 'b'; });
  CHECK(text == "ab");
  q.post([&] {
    q.post_and_wait([&] { text += 'c'; });
    text += 'd';
  });
  q.run();
  CHECK(text == "abcd");
  mcast::queue own;
  own.start();
  CHECK(own.post_and_wait([&] { return own.post_and_wait([] { return 3; }); }) == 3);
}

TEST_CASE("what is not called is an error for the one that waits") {
  mcast::queue q(1);
  CHECK(q.post([] {}));
  CHECK(failure([&] { q.post_and_wait([] {}); }) == MULTICAST_ERROR_QUEUE_FULL);
  mcast::queue dropped;
  std::thread drops([&] {
    while (dropped.wait() == 0) {
    }
    dropped.clear();
  });
  CHECK(failure([&] { dropped.post_and_wait([] {}); }) == MULTICAST_ERROR_STATE);
  drops.join();
}

TEST_CASE("of two queues that wait for each other, one gives up") {
  std::atomic<multicast_status> outer{MULTICAST_OK}, inner{MULTICAST_OK};
  mcast::queue a, b;
  a.start();
  b.start();
  a.post_and_wait([&] {
    outer = failure([&] {
      b.post_and_wait([&] { inner = failure([&] { a.post_and_wait([] {}); }); });
    });
  });
  CHECK(b.stop() == MULTICAST_OK);  // may still wait for a
  CHECK(a.stop() == MULTICAST_OK);
  // The calls would wait for each other, so the wait that begins later fails.
  CHECK(std::min(outer.load(), inner.load()) == MULTICAST_ERROR_STATE);
  CHECK(std::max(outer.load(), inner.load()) == MULTICAST_OK);
}

TEST_CASE("an invocation can wait for its queued calls") {
  mcast::signal<void(int)> plain;
  mcast::signal<void(const std::string &)> text;
  mcast::queue q;
  std::atomic<int> sum{0};
  plain.add([&](int n) { sum += n; }, mcast::on(q));
  plain.add([&](int n) { sum += n; });
  text.add([&](const std::string &t) { sum += static_cast<int>(t.size()); }, mcast::on(q));
  q.start();
  const multicast_outcome outcome = plain.invoke_and_wait(5);
  CHECK(sum == 10);
  CHECK(outcome.called == 1);
  CHECK(outcome.queued == 1);
  CHECK(outcome.finished == 1);
  CHECK(text.invoke_and_wait("four").finished == 1);
  CHECK(sum == 14);
  mcast::signal<void()> none;
  CHECK(none.invoke_and_wait().queued == 0);
}

TEST_CASE("an invocation that waits gets the exceptions of queued calls") {
  mcast::signal<void(int)> s;
  mcast::queue q;
  q.start();
  s.add([](int n) { throw n; }, mcast::on(q));
  CHECK_THROWS_AS(s.invoke_and_wait(3), int);
  s.add([](int) { throw 'c'; });
  CHECK_THROWS_AS(s.invoke_and_wait(3), char);
}

TEST_CASE("an invocation waits no longer than it may") {
  mcast::signal<void(std::string)> s;
  mcast::queue q;
  const handled expected;
  s.add([](const std::string &) { throw 1; }, mcast::on(q));
  const multicast_outcome outcome = s.invoke_and_wait_for(std::chrono::milliseconds(1), "text");
  CHECK(outcome.unfinished == 1);
  q.run();  // an exception is now lost
  CHECK(handled::count() == 0);
}

TEST_CASE("an invocation may wait for no time") {
  mcast::signal<void()> s;
  mcast::queue q;
  s.add([] {}, mcast::on(q));
  CHECK(s.invoke_and_wait_for(std::chrono::nanoseconds(0)).unfinished == 1);
  CHECK(q.run() == 1);
}

TEST_CASE("a queue has the options of C") {
  multicast_queue_options how = MULTICAST_QUEUE_OPTIONS_INIT;
  int woken = 0;
  how.wake = [](void *context) { ++*static_cast<int *>(context); };
  how.wake_context = &woken;
  mcast::queue q(how);
  q.post([] {});
  q.post([] {});
  CHECK(woken == 1);
  CHECK(q.run() == 2);
}

TEST_CASE("a queue that is gone refuses what is posted") {
  const auto witness = std::make_shared<int>();
  mcast::queue destroyed, first;
  CHECK(multicast_queue_destroy(destroyed.handle()) == MULTICAST_OK);
  CHECK(failure([&] { destroyed.post([witness] {}); }) == MULTICAST_ERROR_INVALID_HANDLE);
  mcast::queue moved = std::move(first);
  CHECK(failure([&] { first.post([witness] {}); }) == MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(failure([&] { first.post_and_wait([witness] {}); }) == MULTICAST_ERROR_INVALID_HANDLE);
  CHECK(witness.use_count() == 1);
}

TEST_CASE("the thread that runs a full queue cannot post and wait") {
  mcast::queue q(1);
  q.run();
  q.post([] {});
  CHECK(failure([&] { q.post_and_wait([] {}); }) == MULTICAST_ERROR_QUEUE_FULL);
}

TEST_CASE("another thread has begun a run: it is called there, once") {
  mcast::queue q;
  gate entered;
  std::atomic<int> calls{0};
  q.run();  // until then this thread runs the queue
  q.post([&] {
    entered.open();
    while (q.statistics().pending < 2) std::this_thread::yield();
  });
  std::thread other([&] {
    while (multicast_queue_run(q.handle(), 0) != 2) std::this_thread::yield();
  });
  entered.wait();
  q.post_and_wait([&] { ++calls; });
  other.join();
  CHECK(calls == 1);
}

TEST_CASE("a thread is not taken for one that ran the queue and ended") {
  mcast::queue q;
  q.post([] {});
  std::thread([&] { q.run(); }).join();
  std::thread::id made_on;
  std::thread other([&] { q.post_and_wait([&] { made_on = std::this_thread::get_id(); }); });
  q.wait(std::chrono::seconds(20));
  CHECK(q.run() == 1);
  other.join();
  const bool is_made_here = made_on == std::this_thread::get_id();
  CHECK(is_made_here);
}
