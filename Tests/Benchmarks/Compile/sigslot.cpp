#include <sigslot/signal.hpp>

#include <cstdio>

struct label {
  void show(int value) { std::printf("%d\n", value); }
};

int main() {
  sigslot::signal<int> changed;
  label one;
  auto connection = changed.connect(&label::show, &one);
  changed.connect([](int value) { std::printf("lambda: %d\n", value); });
  changed(1);
  connection.disconnect();
}
