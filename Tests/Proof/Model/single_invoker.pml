/* As long as only one thread has ever invoked a multicast, that thread can change the multicast
 * without a fence.
 *
 * An invocation publishes its frame with the list, then registers its thread as the single invoker
 * or as one of several, and then reads the list again. A writer reads the word of the invokers
 * under the lock of the multicast. If no thread is registered, or only the writer itself, no other
 * thread is reading a list, and an invoker that registers later sees the writer's changes. The
 * writer can therefore free the old list immediately, or change it in place, and reuse the slot of
 * a registration immediately, unless the writer itself is inside an invocation. A second invoker
 * ends this mode for the rest of the multicast's life.
 *
 * The first invoker registers by a compare-and-swap, then reads the lock, and reads the word once
 * more. If the lock is free, every later writer finds the invoker registered. The invoker in turn
 * sees the changes of all earlier writers, including one that has stored the word again. If the
 * lock is taken, the invoker registers once more, under the lock. All other invokers register under
 * the lock.
 *
 * The model proves that no list is read after it has been freed or while it is changed in place,
 * that the delegate is not called after its release, that no stale list entry leads to the next
 * registration in its slot, and that no retired list and no deferred release is left over. core.pml
 * has the steps.
 *
 * The writer grows the list, removes delegate 1 and adds another delegate. The writer is thread A
 * after its invocation, thread A inside the call of delegate 1, or W, which does not invoke.
 *
 * Threads: A, B and C invoke. W writes.
 *
 * Variants: FIRST=0 (which threads may register without the lock if they come first: 1 is A, 2 is
 * B, 3 is both), HAS_B=0, HAS_C=0, WRITER=0 (0: W; 1: A after its invocation; 2: A inside the
 * call), A_IS_REGISTERED=0 (A is the single invoker at the start), B_IS_STALE (B has a stale
 * handle), WRITERS_BUFFERED.
 */

#define FRAMES 3
#define NEXT_THREAD(f) (f + 1)
#define SLOTS 2
#define LISTS 3
#define DELEGATES 1
#define HAS_LISTS 1
#define THREADS 4
#define BUFFERED EITHER(WRITERS_BUFFERED, 4, 3)
#define BUFFER 5

#include "core.pml"

inline write(me, waits) {
  add(me, true);
  remove(me, TOKEN(0, 1), waits, 2)
}

bit has_written;
inline body(me, d) {
#if WRITER == 2
  when(me == 0 && !has_written, has_written = 1; write(0, 0));
#endif
  skip
}

THREAD(A, LOCALS,
       invoke(0, 0, 1);
#if WRITER == 1
       write(0, 1);
       add(0, false);
#endif
       skip)
THREAD(B, LOCALS, invoke(1, 1, EITHER(B_IS_STALE, 2, 1)))
THREAD(C, LOCALS, invoke(2, 2, 1))
THREAD(W, LOCALS,
       write(3, 1))

init {
  byte t;
  begin(A_IS_REGISTERED);
  atomic {
    run A();
    IF(HAS_B, run B();)
    IF(HAS_C, run C();)
#if WRITER == 0
    run W();
#endif
    skip
  };
  d_step {
    done == 1 + HAS_B + HAS_C + (WRITER == 0) && ALL_DRAINED ->
    check_end()
  }
}
