#include <multicast.h>
#include <stdio.h>

static void greet(void *context, uint32_t event, const void *payload, size_t size) {
  (void)event;
  printf("%s, %.*s\n", (const char *)context, (int)size, (const char *)payload);
}

int main(void) {
  multicast m = multicast_create();
  multicast_delegate d = {greet, (void *)"hello"};
  if (multicast_add(m, d, NULL, NULL) != MULTICAST_OK) return 1;
  if (multicast_invoke(m, 0, "world", 5) != 1) return 1;
  return multicast_destroy(m) == MULTICAST_OK ? 0 : 1;
}
