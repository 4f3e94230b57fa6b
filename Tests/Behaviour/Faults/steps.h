/* Single-steps a thread with the trap flag of x86-64, and runs code on another thread between two
 * steps. */

#ifndef STEPS_H
#define STEPS_H

typedef enum due { NOT_YET, NOW, NO_MORE } due;

/* Runs `body` on a new thread. After `body` has called begin_steps(), a signal handler on that
 * thread calls `when` before each of the library's instructions. If `when` returns NOW, the new
 * thread waits until `answer` has run on the calling thread. The new thread waits for at most 100
 * ms, because it may be holding a lock of the library that `answer` needs. If `answer` calls
 * need_no_lock(), the limit no longer applies. After the wait the new thread continues, and `when`
 * is not called again until `answer` has returned.
 *
 * Returns how many times `answer` has run. */
int answer_at_steps(void (*body)(void), due (*when)(void), void (*answer)(void));
/* Like answer_at_steps(), but runs `answer` only before the instruction with the given number,
 * counted from 0. Returns 0 if `body` executes fewer instructions of the library. */
int answer_at_step(int number, void (*body)(void), void (*answer)(void));
void begin_steps(void);

/* Called by `answer` when its remaining work takes no lock of the library. On a busy machine this
 * work may take longer than 100 ms. */
void need_no_lock(void);

/* Must be called in a child that `answer` has forked, since the stepped thread does not exist
 * there. */
void forget_steps(void);

#endif
