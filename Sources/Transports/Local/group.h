/* A group is a folder that contains a socket for each peer. The sockets that these functions open
 * must be closed with descriptor_close(). */

#ifndef MULTICAST_LOCAL_GROUP_H
#define MULTICAST_LOCAL_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

enum { FILE_NAME_SIZE = 32, GROUP_NAME_MAX = 100 };

typedef struct group {
  int folder, listener; /* negative: none */
  char file[FILE_NAME_SIZE]; /* name of the listener's socket in the folder */
} group;

/* Why group_enter() has failed. */
typedef struct trouble {
  int error; /* an errno */
  const char *reason;
} trouble;

bool group_is_name(const char *name);

/* Creates the folder of the group if it does not exist, and creates a listening socket in it.
 * Connects to each peer that is listening in the folder, and calls `met` with the new socket and
 * the file name of the peer's socket. `met` takes ownership of the new socket. Returns false if the
 * group cannot be joined now or if a call to `met` has returned false. */
bool group_enter(group *g, const char *directory, const char *name,
                 bool (*met)(void *context, int socket, const char *file), void *context,
                 trouble *why);
/* Accepts a connection. If there is none, returns a negative number and sets errno. */
int group_accept(const group *g);
/* Connects to the socket whose file name is `file`. If this fails, returns a negative number and
 * sets errno. If the peer no longer exists, also removes the socket file. */
int group_reach(const group *g, const char *file);
/* Removes the socket files of a process that has ended. */
void group_sweep(const group *g, pid_t pid);
/* Removes this client's socket. If this client is the last member, also removes the folder. */
void group_leave(group *g, const char *directory, const char *name);

#endif
