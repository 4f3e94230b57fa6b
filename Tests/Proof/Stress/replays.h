/* A multicast that replays. Threads invoke it with numbers and add listeners, which expect each
 * number once and in order. */

#ifndef REPLAYS_H
#define REPLAYS_H

void replays_make(void);

/* Called at the end of a round, when no other thread invokes. */
void replays_end(void);

#endif
