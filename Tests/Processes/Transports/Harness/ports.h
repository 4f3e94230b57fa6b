/* Finds free ports of the loopback device. */

#ifndef PORTS_H
#define PORTS_H

#include <stdbool.h>

int free_port(void);
bool is_port_open(int port);

#endif
