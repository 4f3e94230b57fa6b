// A part of the program of main.cpp, in a separate file.
#include <multicast.hpp>

mcast::registration add_one(mcast::signal<void(int)> &to, int &sum, mcast::queue &loop);
mcast::registration add_one(mcast::signal<void(int)> &to, int &sum, mcast::queue &loop) {
  return to.add([&sum](int number) { sum += number; }, mcast::on(loop));
}
