/* A group: a folder with a socket for each peer. */

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

/* Creates the folder if it does not exist, and listens in it. Connects to each peer that listens
 * there, and calls `met` with the new socket, which `met` takes over, and the file name of the
 * peer's socket. Returns false if that is not possible now or `met` has returned false. */
bool group_enter(group *g, const char *directory, const char *name,
                 bool (*met)(void *context, int socket, const char *file), void *context,
                 trouble *why);
/* Connects to the socket with this file name. If it fails, returns a negative number and sets
 * errno; if the peer does not exist any more, removes the file. */
int group_reach(const group *g, const char *file);
/* Removes the sockets that a process has left behind. */
void group_sweep(const group *g, pid_t pid);
/* Removes this client's socket. The last member removes the folder. */
void group_leave(group *g, const char *directory, const char *name);

#endif
