#include <multicast.hpp>

#include <cstdio>

struct label {
  void show(int value) { std::printf("%d\n", value); }
};

int main() {
  mcast::signal<void(int)> changed;
  label one;
  changed.add(&one, &label::show);
  changed.add([](int value) { std::printf("lambda: %d\n", value); });
  changed(1);
  changed.remove(&one, &label::show);
}
