/* A multicast that replays. Threads invoke it with numbers and add listeners, which expect each
 * number once and in order. */

#ifndef REPLAYS_H
#define REPLAYS_H

void replays_make(void);

/* At the end of a round: no other thread invokes any more. */
void replays_end(void);

void replays_invoke(void);
void replays_listen(void);
void replays_replace(void); /* destroys the multicast, and makes the next one */

#endif
