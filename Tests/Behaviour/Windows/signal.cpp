/* Uses the C++ headers on Windows: signals, queues, waiting, and process-wide locks. */
#include <multicast.hpp>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

static void check(bool holds, int line) {
  if (holds) return;
  std::printf("signal.cpp:%d does not hold\n", line);
  std::exit(1);
}
#define CHECK(condition) check(condition, __LINE__)

int main() {
  std::string calls;
  mcast::signal<void(int)> changed;
  {
    mcast::scoped_registration first =
        changed.add([&](int value) { calls += std::to_string(value); });
    changed(1);
    const mcast::scoped_pause pause(changed);
    changed(2);
  }
  changed(3);
  CHECK(calls == "1");

  mcast::queue loop;
  mcast::options queued;
  queued.queue = loop;
  mcast::scoped_registration later = changed.add([&](int) { calls += "q"; }, queued);
  changed(4);
  CHECK(calls == "1");
  CHECK(loop.run() == 1);
  CHECK(calls == "1q");
  std::puts("signals, pauses and queues work");
}
