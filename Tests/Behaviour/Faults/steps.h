/* Threads that the processor stops after each instruction, by means of the trap flag of x86-64. */

#ifndef STEPS_H
#define STEPS_H

typedef enum due { NOT_YET, NOW, NO_MORE } due;

/* Runs `body` on a new thread, which calls begin_steps(). From then on a signal handler on that
 * thread calls `when` before each instruction of the library. If the result is NOW, the thread
 * waits until `answer` has run on the calling thread, but for at most 100 ms: it may hold a lock of
 * the library that `answer` needs. It then continues and calls `when` again after `answer` has
 * returned.
 *
 * Returns how often `answer` has run. */
int answer_at_steps(void (*body)(void), due (*when)(void), void (*answer)(void));
/* The same for one instruction of the library: the one with this number, from 0. Returns 0 if
 * `body` executes fewer. */
int answer_at_step(int number, void (*body)(void), void (*answer)(void));
void begin_steps(void);

/* Called in a child that `answer` has forked, where the thread must not be stopped any more. */
void forget_steps(void);

#endif
