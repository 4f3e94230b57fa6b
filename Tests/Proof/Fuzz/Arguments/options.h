#ifndef OPTIONS_H
#define OPTIONS_H

#include "multicast.h"

/* Options for an add, mostly readable ones; sometimes NULL. */
multicast_add_options *any_options(void);

multicast_create_options *any_create_options(void);
multicast_broadcaster_options *any_broadcaster_options(void);
multicast_watch *any_watch(void);

/* Perhaps NULL, or one that cannot be read. */
multicast_transport *any_transport(void);

#endif
