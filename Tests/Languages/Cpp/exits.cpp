// Tests exit(), which destroys static objects while another thread is in a call that never returns.

#include "test.hpp"

#include <multicast/watch.hpp>

#include <chrono>

#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

namespace exit_tests {

// Runs a body in a child process, which must end with exit(0) within 20 seconds.
template <typename Body>
void ends(Body body) {
  int status = 0;
  static_cast<void>(std::fflush(nullptr));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    alarm(20);
    body();
    _exit(1);
  }
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

template <typename Invoke>
void invoke_for_ever(Invoke invoke, const std::atomic<bool> &is_inside) {
  std::thread(invoke).detach();
  while (!is_inside) std::this_thread::yield();
}

std::atomic<bool> is_inside{false};

void stay() {
  is_inside = true;
  for (;;) pause();
}

TEST_CASE("exit destroys a static signal whose delegate does not return") {
  ends([] {
    static mcast::signal<void()> news;
    static mcast::scoped_registration first = news.add(stay);
    static mcast::lifetime all;
    static_cast<void>(news.add([] {}, mcast::under(all)));
    invoke_for_ever([] { news(); }, is_inside);
    std::exit(0);
  });
}

TEST_CASE("exit destroys a static signal that is made later than others") {
  ends([] {
    mcast::signal<void()> first;
    static_cast<void>(first.add([] {}));
    first();
    static const auto later = std::make_unique<mcast::signal<void()>>();
    static_cast<void>(later->add(stay));
    invoke_for_ever([] { (*later)(); }, is_inside);
    std::exit(0);
  });
}

TEST_CASE("exit destroys a static queue whose thread never returns") {
  ends([] {
    static mcast::queue worker;
    CHECK(multicast_queue_start(worker.handle()) == MULTICAST_OK);
    static mcast::signal<void()> news;
    static_cast<void>(news.add(stay, mcast::on(worker)));
    news();
    while (!is_inside) std::this_thread::yield();
    std::exit(0);
  });
}

TEST_CASE("exit destroys a static watch whose function does not return") {
  ends([] {
    static mcast::signal<void()> news;
    mcast::watch_options how;
    how.called = [](mcast::registration, uint32_t, std::chrono::nanoseconds) { stay(); };
    static const mcast::watch watching(news, std::move(how));
    static_cast<void>(news.add([] {}));
    invoke_for_ever([] { news(); }, is_inside);
    std::exit(0);
  });
}

TEST_CASE("exit destroys a static observer whose method does not return") {
  struct reader : mcast::observer {
    void read() { stay(); }
  };
  ends([] {
    static mcast::signal<void()> news;
    static reader one;
    static_cast<void>(news.add(&one, &reader::read));
    invoke_for_ever([] { news(); }, is_inside);
    std::exit(0);
  });
}

}  // namespace exit_tests
