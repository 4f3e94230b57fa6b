/* The functions of the client's thread. */

#ifndef MULTICAST_LOCAL_SESSION_H
#define MULTICAST_LOCAL_SESSION_H

#include "../Common/client.h"

bool session_run(client *c);
void session_end(client *c);

#endif
