/* Descriptors that the child of a fork must not keep. If a child kept the connections of its parent
 * open and the parent were killed, the parent's peers would not be notified. If a child kept a
 * listening socket open, new members of the group would connect to it and wait for an answer. */

#ifndef MULTICAST_LOCAL_DESCRIPTORS_H
#define MULTICAST_LOCAL_DESCRIPTORS_H

/* Records a new descriptor, and returns it. The caller must hold process_lock() from before the
 * system call that opens the descriptor, so that no fork can come in between. Does nothing if the
 * descriptor is negative. If the descriptor is too large to be recorded, closes it, sets errno to
 * EMFILE and returns -1. */
int descriptor_record(int descriptor);
/* Closes a recorded descriptor. */
void descriptor_close(int descriptor);
/* Closes all recorded descriptors. Called in the child, inside fork(). */
void descriptors_close_in_child(void);

#endif
