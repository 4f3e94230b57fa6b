/// Invocations that sleep until a full queue has room.
///
/// Such a thread sleeps with the queue as its key. The queue notes under its lock that room is
/// awaited: set by a thread that is about to sleep, under the waits' lock too; taken away under
/// both locks when the last of them is woken. As long as it is set the head of the ring is closed.
/// So each call is taken out under the lock, and wakes one thread: one place, one wake-up. What
/// makes room for several at once wakes all.
extension Queue {
  private var roomKey: Sleeper.Key { Wait.room(consumer: consumer).key }

  /// Wakes the thread that has slept longest for room. No lock is held.
  @inline(never)
  func wakeForRoom() {
    Waits.wakeOne(roomKey) {
      lock.lock()
      state.isRoomAwaited = false
      lock.unlock()
    }
  }

  /// Wakes all threads that sleep for room. No lock is held.
  @inline(never)
  func wakeAllForRoom() {
    Waits.wake(roomKey) {
      lock.lock()
      state.isRoomAwaited = false
      lock.unlock()
    }
  }
}
