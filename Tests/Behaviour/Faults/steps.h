/* Threads that the processor stops after each instruction, by a flag that x86-64 lets a thread
 * set. */

#ifndef STEPS_H
#define STEPS_H

typedef enum due { NOT_YET, NOW, NO_MORE } due;

/* Runs `body` on a new thread, which calls `begin_steps`. From then on asks `when`, on that thread
 * and in a signal handler, before each instruction of the library. Now: the thread waits until
 * `answer` has run on the calling thread, for 100 ms at most. It waits no longer because it may
 * hold a lock of the library, which `answer` needs then: it goes on, and asks again when `answer`
 * has returned.
 *
 * Returns how often `answer` has run. */
int answer_at_steps(void (*body)(void), due (*when)(void), void (*answer)(void));
/* The same for one instruction of the library: the one with this number, from 0. Returns 0 if
 * `body` executes fewer. */
int answer_at_step(int number, void (*body)(void), void (*answer)(void));
void begin_steps(void);

/* In a child that `answer` has forked: the thread is not stopped any more. */
void forget_steps(void);

#endif
