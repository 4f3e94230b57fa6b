#include <multicast.h>

#include <cstdio>
#include <string>

static void greet(void *context, uint32_t, const void *payload, size_t size) {
  const std::string name(static_cast<const char *>(payload), size);
  std::printf("%s, %s\n", static_cast<std::string *>(context)->c_str(), name.c_str());
}

int main() {
  std::string greeting = "hello";
  multicast m = multicast_create();
  multicast_delegate d = {greet, &greeting};
  if (multicast_add(m, d, nullptr, nullptr) != MULTICAST_OK) return 1;
  if (multicast_invoke(m, 0, "world", 5) != 1) return 1;
  return multicast_destroy(m) == MULTICAST_OK ? 0 : 1;
}
