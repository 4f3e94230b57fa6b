/* Groups, and peers of them. */

#ifndef GROUPS_H
#define GROUPS_H

#include "../Transports/Harness/broker.h"

#include <time.h>

uint64_t time_now(void); /* in nanoseconds */

#endif
