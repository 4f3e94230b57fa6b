#include "status_texts.h"

#include "../../../include/multicast.h"

const char *shims_status_name(int64_t status) {
  switch (status) {
#define NAME(name, value, message) \
  case value:                      \
    return #name;
    MULTICAST_STATUS_MAP(NAME)
#undef NAME
  }
  return "MULTICAST_UNKNOWN_STATUS";
}

const char *shims_status_message(int64_t status) {
  switch (status) {
#define MESSAGE(name, value, message) \
  case value:                         \
    return message;
    MULTICAST_STATUS_MAP(MESSAGE)
#undef MESSAGE
  }
  return "not a status of this library";
}
