#include <eventpp/callbacklist.h>

#include <cstdio>

struct label {
  void show(int value) { std::printf("%d\n", value); }
};

int main() {
  eventpp::CallbackList<void(int)> changed;
  label one;
  auto handle = changed.append([&one](int value) { one.show(value); });
  changed.append([](int value) { std::printf("lambda: %d\n", value); });
  changed(1);
  changed.remove(handle);
}
