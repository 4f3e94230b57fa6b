#include <nano_signal_slot.hpp>

#include <cstdio>

struct label : Nano::Observer<> {
  void show(int value) { std::printf("%d\n", value); }
};

int main() {
  Nano::Signal<void(int)> changed;
  label one;
  auto lambda = [](int value) { std::printf("lambda: %d\n", value); };
  changed.connect<&label::show>(one);
  changed.connect(lambda);
  changed.fire(1);
  changed.disconnect<&label::show>(one);
}
