#include "process.h"

multicast inherited;

void use_everything(void *unused) {
  int calls = 0, ignored = 0;
  multicast_token token = add(inherited, counter(&ignored));
  CHECK(multicast_count(inherited) >= 1);
  CHECK_OK(multicast_token_remove(token));
  multicast m = multicast_create();
  token = add(m, counter(&calls));
  CHECK_EQ(multicast_invoke(m, 0, NULL, 0), 1);
  CHECK_EQ(calls, 1);
  CHECK_OK(multicast_token_remove(token));
  CHECK_OK(multicast_destroy(m));
}
