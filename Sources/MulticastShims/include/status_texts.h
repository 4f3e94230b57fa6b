// The texts of statuses, made from MULTICAST_STATUS_MAP: the header alone defines them.

#ifndef MULTICAST_STATUS_TEXTS_H
#define MULTICAST_STATUS_TEXTS_H

#include <stdint.h>

__attribute__((visibility("hidden"))) const char *shims_status_name(int32_t status);
__attribute__((visibility("hidden"))) const char *shims_status_message(int32_t status);

#endif
