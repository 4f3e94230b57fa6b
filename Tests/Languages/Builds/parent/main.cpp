// A program in another project. It uses threads, queues, exceptions and removals.
#include <cstdio>
#include <stdexcept>
#include <thread>

#include <multicast.hpp>

mcast::registration add_one(mcast::signal<void(int)> &to, int &sum, mcast::queue &loop);

int main() {
  mcast::signal<void(int)> s;
  mcast::queue loop;
  int sum = 0, direct = 0;
  const mcast::registration queued = add_one(s, sum, loop);
  const mcast::scoped_registration ours = s.add([&](int number) {
    direct += number;
    if (number == 3) throw std::runtime_error("three");
  });
  std::thread other([&] {
    for (int i = 1; i <= 3; ++i) {
      try {
        s(i);
      } catch (const std::runtime_error &) {
        direct += 100;
      }
    }
  });
  other.join();
  loop.run();
  if (sum == 6 && direct == 106 && queued.remove() == MULTICAST_OK && s.size() == 1) return 0;
  std::printf("sum is %d, expected 6; direct is %d, expected 106; size() is %zu\n", sum, direct,
              s.size());
  return 1;
}
