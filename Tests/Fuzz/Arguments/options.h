#ifndef OPTIONS_H
#define OPTIONS_H

#include "multicast.h"

/* Options for an add, mostly ones that can be read; NULL now and then. */
multicast_options *any_options(void);

#endif
