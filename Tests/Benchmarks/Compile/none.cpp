#include <cstdio>

struct label {
  void show(int value) { std::printf("%d\n", value); }
};

int main() {
  label one;
  one.show(1);
}
