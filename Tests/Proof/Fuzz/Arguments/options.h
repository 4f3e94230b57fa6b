#ifndef OPTIONS_H
#define OPTIONS_H

#include "multicast.h"

/* Options for an add. Mostly readable, sometimes NULL. */
multicast_add_options *any_options(void);

multicast_create_options *any_create_options(void);
multicast_broadcaster_options *any_broadcaster_options(void);
multicast_watch *any_watch(void);

/* A transport. May be NULL or unreadable. */
multicast_transport *any_transport(void);

#endif
