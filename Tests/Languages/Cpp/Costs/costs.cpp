// Calls functions of the C++ header with a given number of delegates. Costs/run counts the
// instructions between begin() and end().
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <multicast.hpp>
#include <valgrind/callgrind.h>

namespace {

using signal = mcast::signal<void()>;
struct window {
  int calls = 0;
  void hear() { ++calls; }
};

void begin() { CALLGRIND_TOGGLE_COLLECT; }
void end() { CALLGRIND_TOGGLE_COLLECT; }

// Returns a callable that is as large as three pointers.
auto callable(window &w, size_t &number) {
  return [&w, &number, copy = &w] { w.calls += copy == &w && number == 0 ? 1 : 0; };
}

void fill(signal &s, window &w, std::vector<mcast::registration> &all, std::vector<size_t> &data) {
  for (size_t &each : data) all.push_back(s.add(w, callable(w, each)));
}

// Measures add(object, callable) for an object that already has other callables.
void add_with_object(size_t size) {
  signal s;
  window w;
  std::vector<size_t> data(size);
  std::vector<mcast::registration> all;
  fill(s, w, all, data);
  for (int i = 0; i < 64; ++i) {
    begin();
    const mcast::registration one = s.add(w, callable(w, data[0]));
    end();
    one.remove();
  }
}
// Measures the removal of an object's first and last callables.
void remove_with_object(size_t size) {
  signal s;
  window w;
  std::vector<size_t> data(size + 64);
  std::vector<mcast::registration> all;
  fill(s, w, all, data);
  begin();
  for (size_t i = 0; i < 32; ++i) all[i].remove();
  for (size_t i = 0; i < 32; ++i) all[all.size() - 1 - i].remove();
  end();
}
// Measures add(object, method) and remove(object, method) for an object that has callables in
// another signal.
void method_of_object(size_t size) {
  signal s, elsewhere;
  window w;
  std::vector<size_t> data(size);
  std::vector<mcast::registration> all;
  fill(elsewhere, w, all, data);
  begin();
  for (int i = 0; i < 64; ++i) {
    s.add(w, &window::hear);
    s.remove(w, &window::hear);
  }
  end();
}
// Measures remove_object(), which removes all callables of an object.
void remove_object(size_t size) {
  signal s;
  window w;
  std::vector<size_t> data(size);
  std::vector<mcast::registration> all;
  fill(s, w, all, data);
  begin();
  s.remove_object(w);
  end();
}
// Measures is_valid() in a signal with many delegates, while this signal and another one track
// objects.
void is_valid(size_t size) {
  signal s, other;
  window w;
  std::vector<size_t> data(size);
  std::vector<mcast::registration> all;
  fill(s, w, all, data);
  const auto object = std::make_shared<int>();
  other.add(object, [] {});
  const mcast::registration tracked = s.add(object, [] {});
  begin();
  for (int i = 0; i < 64; ++i) {
    if (!all[0].is_valid() || !tracked.is_valid()) std::abort();
  }
  end();
}
// Measures size() while another signal tracks objects.
void size_beside_tracked(size_t size) {
  signal s, other;
  window w;
  std::vector<size_t> data(size);
  std::vector<mcast::registration> all;
  fill(s, w, all, data);
  other.add(std::make_shared<int>(), [] {});
  begin();
  for (int i = 0; i < 64; ++i) {
    if (s.size() != size) std::abort();
  }
  end();
}

struct {
  const char *name;
  void (*run)(size_t size);
} const all[] = {{"add_with_object", add_with_object}, {"remove_with_object", remove_with_object},
                 {"method_of_object", method_of_object}, {"remove_object", remove_object},
                 {"is_valid", is_valid}, {"size_beside_tracked", size_beside_tracked}};

}  // namespace

int main(int count, char *arguments[]) {
  for (const auto &each : all) {
    if (count == 1) std::puts(each.name);
    if (count == 3 && std::strcmp(arguments[1], each.name) == 0) {
      each.run(std::strtoul(arguments[2], nullptr, 10));
    }
  }
  return 0;
}
