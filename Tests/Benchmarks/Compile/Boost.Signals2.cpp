#include <boost/signals2.hpp>

#include <cstdio>

struct label {
  void show(int value) { std::printf("%d\n", value); }
};

int main() {
  boost::signals2::signal<void(int)> changed;
  label one;
  auto connection = changed.connect([&one](int value) { one.show(value); });
  changed.connect([](int value) { std::printf("lambda: %d\n", value); });
  changed(1);
  connection.disconnect();
}
