/* The lists of a multicast, which grow and are compacted while invocations read them.
 *
 * An invocation publishes the pointer to the list in its frame, executes the light fence and reads
 * the pointer of the multicast again, until both are equal. A writer replaces the list under the
 * lock, executes a full fence, and stamps the old list with the number of heavy fences that have
 * begun. A retired list is freed when a later heavy fence has ended and no frame names the list.
 * The writer tries to free the list after its own heavy fence. Each invocation that has named the
 * list tries to free it when it names another list or ends. An invocation executes no heavy fence
 * for that. If the writer's fence is still missing, the invocation leaves the list to the writer.
 *
 * The model proves that no list is read after it has been freed, that each replaced list is freed
 * even if no thread uses the multicast again, and that no delegate is called after its removal has
 * returned. core.pml has the steps.
 *
 * Threads: A and B invoke. G grows the list. R removes delegate 1. F executes a heavy fence for
 * another multicast and then reclaims, as an ending invocation does.
 *
 * Variants: HAS_B=0, B_IS_ELSEWHERE (B invokes another multicast), A_INVOKES_TWICE=0, NESTED=0 (A
 * invokes again inside the call of delegate 1), HAS_G=0 (how often the list grows), HAS_F=0,
 * HAS_R=0, COMPACT=0 (R replaces the list by a smaller one), WRITERS_BUFFERED.
 */

#define FRAMES_OF_A (1 + NESTED)
#define FRAMES (FRAMES_OF_A + HAS_B)
#define NEXT_THREAD(f) (f < FRAMES_OF_A -> FRAMES_OF_A : FRAMES)
#define SLOTS 3
#define LISTS 4
#define DELEGATES 1
#define HAS_LISTS 1
#define THREADS 4
#define BUFFERED EITHER(WRITERS_BUFFERED, 4, 2)
#define BUFFER EITHER(WRITERS_BUFFERED, 5, 4)

#include "core.pml"

inline body(me, d) {
  IF(NESTED, when(me == 0 && d == TOKEN(0, 1), invoke_inner(0, 1, 1));)
  skip
}

THREAD(A, LOCALS,
       byte times;
       do
       :: times <= A_INVOKES_TWICE -> invoke(0, 0, 1); times++
       :: else -> break
       od)

/* B names list 1 in a frame of another multicast. This can happen because B's list has been freed
 * and list 1 has the same address. */
inline invoke_elsewhere(me, frame) {
  store(me, FRAME_LIST(frame), 1);
  store(me, TARGET(frame), ELSEWHERE);
  store(me, TARGET(frame), 0)
}

IF(HAS_B, THREAD(B, LOCALS,
                 EITHER(B_IS_ELSEWHERE, invoke_elsewhere(1, FRAMES_OF_A),
                                        invoke(1, FRAMES_OF_A, 1))))

IF(HAS_G, THREAD(G, LOCALS,
                 byte times;
                 do
                 :: times < HAS_G -> add(2, true); times++
                 :: else -> break
                 od))

IF(HAS_F, THREAD(F, LOCALS, fence(3); lock_and_reclaim(3, 0)))

IF(HAS_R, THREAD(R, LOCALS, remove(3, TOKEN(0, 1), 1, COMPACT)))

init {
  byte t;
  begin(SEVERAL);
  atomic {
    run A();
    IF(HAS_B, run B();)
    IF(HAS_G, run G();)
    IF(HAS_F, run F();)
    IF(HAS_R, run R();)
    skip
  };
  d_step {
    done == 1 + HAS_B + (HAS_G > 0) + HAS_F + HAS_R && ALL_DRAINED ->
    check_end()
  }
}
