// Uses C++ and ordinary Swift in one process. Both languages have delegates in the same multicast.
#include <cstdio>
#include <cstdint>
#include <multicast.hpp>
#include <string>

extern "C" bool greeting_join(multicast m);
extern "C" int32_t greeting_count(void);

static void greet(void *context, uint32_t, const void *payload, size_t size) {
  const std::string name(static_cast<const char *>(payload), size);
  std::printf("c++: %s, %s\n", static_cast<std::string *>(context)->c_str(), name.c_str());
}

int main() {
  // Swift's print() shares the buffers of printf(), so the lines appear in the order of the calls.
  std::string greeting = "hello";
  multicast m = multicast_create();
  if (!greeting_join(m)) return 1;
  multicast_delegate delegate = {greet, &greeting};
  if (multicast_add(m, delegate, nullptr, nullptr) != MULTICAST_OK) return 1;
  if (multicast_invoke(m, 0, "world", 5) != 2) return 1;
  if (greeting_count() != 1) return 1;
  if (multicast_destroy(m) != MULTICAST_OK) return 1;
  if (greeting_count() != -1) return 1;

  mcast::signal<void(int)> numbered;
  mcast::scoped_registration registration =
      numbered.add([](int number) { std::printf("c++: %d\n", number); });
  numbered(7);
}
