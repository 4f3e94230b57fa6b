import MulticastShims
import Synchronization

/// The lock of a queue, or of the watches: a word of static storage. A thread that finds it held
/// spins for a moment before it sleeps.
///
/// Producers and the thread that runs a queue hold its lock in turn, for some ten nanoseconds each.
/// A mutex of libc takes twice as long without contention, and sleeps too early with it.
struct SpinningLock {
  /// 0: free. 1: held. 2: held, and threads may sleep.
  let word: UnsafeMutablePointer<UInt32>

  private static let count = UInt32(SHIMS_QUEUE_LOCK_COUNT)

  /// Guards the queues whose indices share this lock, except their handles and the calls that a run
  /// takes out without it: see `CallRing`. A thread holds one such lock at a time.
  static func queues(_ index: UInt32) -> SpinningLock {
    SpinningLock(word: shims_get_queue_lock(index).unsafelyUnwrapped)
  }

  /// Guards the watches, and the call statistics of registrations.
  static var watches: SpinningLock { SpinningLock(word: shims_get_watch_lock().unsafelyUnwrapped) }

  private var state: UnsafeMutablePointer<Atomic<UInt32>> {
    UnsafeMutableRawPointer(word).assumingMemoryBound(to: Atomic<UInt32>.self)
  }

  @inline(never) func lock() { lockInline() }
  @inline(never) func unlock() { unlockInline() }

  /// Takes the lock if no thread holds it.
  func tryLock() -> Bool {
    guard take() else { return false }
    checkBeforeLocking()
    return true
  }

  // For the work of each call. Elsewhere inlining would only make the library larger.

  func lockInline() {
    checkBeforeLocking()
    if _slowPath(!take()) { lockSlowly() }
  }

  func unlockInline() {
    // Release: pairs with the acquire in `take`.
    // order: lock
    if _slowPath(state.pointee.exchange(0, ordering: .releasing) == 2) { wakeNext() }
    checkAfterUnlocking()
  }

  private func wakeNext() { shims_futex_wake(word, 1) }

  /// Takes the lock if it is free. Acquire: pairs with the release in `unlock`.
  private func take() -> Bool {
    state.pointee.compareExchange(
      // order: lock
      expected: 0, desired: 1, successOrdering: .acquiring, failureOrdering: .relaxed
    ).exchanged
  }

  private func lockSlowly() {
    // The pauses get longer. So the thread that has the lock takes it several times in a row, and
    // its processor keeps the data.
    var pauses = 4
    while pauses <= 256 {
      var count = 0
      while count < pauses {
        shims_pause()
        count &+= 1
      }
      if state.pointee.load(ordering: .relaxed) == 0 && take() { return }
      pauses *= 2
    }
    // Taken with 2: there may be other threads that sleep.
    while state.pointee.exchange(2, ordering: .acquiring) != 0 {  // order: lock
      shims_futex_wait(word, 2, .max)
    }
  }

  /// Sleeps until another thread has changed the word and wakes this thread, or until a moment. The
  /// lock is released meanwhile. May also return without a reason.
  func sleep(with event: UnsafeMutablePointer<Atomic<UInt32>>, until moment: UInt64) {
    checkBeforeSleeping()
    let value = event.pointee.load(ordering: .relaxed)
    unlock()
    shims_futex_wait(Self.address(event), value, moment)
    lock()
  }

  /// Wakes the threads that sleep with a word.
  static func wakeAll(_ event: UnsafeMutablePointer<Atomic<UInt32>>) {
    event.pointee.wrappingAdd(1, ordering: .relaxed)
    shims_futex_wake(address(event), .max)
  }

  private static func address(
    _ event: UnsafeMutablePointer<Atomic<UInt32>>
  ) -> UnsafeMutablePointer<UInt32> {
    UnsafeMutableRawPointer(event).assumingMemoryBound(to: UInt32.self)
  }

  static func forEach(_ body: (SpinningLock) -> Void) {
    var index: UInt32 = 0
    while index < count {
      body(queues(index))
      index &+= 1
    }
    body(watches)
  }
}
