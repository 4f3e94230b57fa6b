#include "policies.h"

multicast create_with_reentry(multicast_reentry reentry) {
  multicast m = multicast_create_with(&CREATE_OPTIONS(.reentry = reentry));
  CHECK(m.id != 0);
  CHECK_OK(multicast_create_error());
  return m;
}

FUNCTION(call_echo, echo *e) {
  int number = 0;
  CHECK_EQ(size, sizeof number);
  memcpy(&number, payload, sizeof number);
  note_call((void *)(intptr_t)e->name, event, payload, size);
  ++e->calls;
  for (int i = 1; i <= e->times && number < e->end; ++i) {
    e->result = invoke_number(e->target, number * 10 + i);
  }
  if (e->in_call != NULL) e->in_call(e);
}

multicast_delegate echoing(echo *e, multicast target, char name, int times, int end) {
  memset(e, 0, sizeof *e);
  e->target = target;
  e->name = name;
  e->times = times;
  e->end = end;
  return (multicast_delegate){call_echo, e};
}
