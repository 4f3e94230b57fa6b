#ifndef OPTIONS_H
#define OPTIONS_H

#include "multicast.h"

/* Return options that the library can usually read, or sometimes NULL. */
multicast_add_options *any_options(void);

multicast_create_options *any_create_options(void);
multicast_broadcaster_options *any_broadcaster_options(void);
multicast_watch *any_watch(void);

/* Returns a transport that the library can usually read, or sometimes NULL. */
multicast_transport *any_transport(void);

#endif
