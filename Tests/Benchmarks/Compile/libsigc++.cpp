#include <sigc++/sigc++.h>

#include <cstdio>

struct label {
  void show(int value) { std::printf("%d\n", value); }
};

int main() {
  sigc::signal<void, int> changed;
  label one;
  sigc::connection connection = changed.connect(sigc::mem_fun(one, &label::show));
  changed.connect([](int value) { std::printf("lambda: %d\n", value); });
  changed.emit(1);
  connection.disconnect();
}
