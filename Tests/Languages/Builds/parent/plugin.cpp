// The second source file of the program in main.cpp.
#include <multicast.hpp>

mcast::registration add_one(mcast::signal<void(int)> &to, int &sum, mcast::queue &loop);
mcast::registration add_one(mcast::signal<void(int)> &to, int &sum, mcast::queue &loop) {
  return to.add([&sum](int number) { sum += number; }, mcast::on(loop));
}
