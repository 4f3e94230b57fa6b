/* A multicast that replays invocations. Threads invoke it with numbers, and add listeners. Each
 * listener expects each number once and in order. */

#ifndef REPLAYS_H
#define REPLAYS_H

void replays_make(void);

/* Called at the end of a round, when no other thread is invoking. */
void replays_end(void);

#endif
