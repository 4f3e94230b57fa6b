import MulticastShims
import Synchronization

/// A lock, represented by a word in static storage. A thread that finds the lock held spins briefly
/// before it sleeps.
///
/// Most locks are held only for tens of nanoseconds. libc's mutex takes twice as long as this lock
/// without contention, and puts threads to sleep too early under contention.
///
/// The lock order is: stripe, lifetime, names, slabs, waits, queue, watches. While a thread holds
/// any of these locks, it executes no heavy fence, and calls none of the caller's functions except
/// the functions of an allocator.
struct Lock {
  /// The word is 0 if the lock is free, 1 if it is held, and 2 if it is held and other threads may
  /// be sleeping.
  let word: UnsafeMutablePointer<UInt32>

  /// Guards the members of the lifetimes whose indices share this lock. A thread holds at most one
  /// of these locks at a time.
  static func lifetimes(_ index: UInt32) -> Lock {
    Lock(index % UInt32(SHIMS_LIFETIME_LOCK_COUNT))
  }

  /// Guards the addition of names to broadcasters.
  static var names: Lock { Lock(UInt32(SHIMS_NAME_LOCK)) }

  /// Guards the slab directories, the pools of slots and the start of the library.
  static var slabs: Lock { Lock(UInt32(SHIMS_SLAB_LOCK)) }

  /// Guards the wait graph and the removals that wait for calls to return.
  static var waits: Lock { Lock(UInt32(SHIMS_WAIT_LOCK)) }

  /// Guards the queues whose indices share this lock, except for their handles and for the calls
  /// that a run removes without the lock (see `CallRing`). A thread holds at most one of these
  /// locks at a time.
  static func queues(_ index: UInt32) -> Lock {
    Lock(queue: index % UInt32(SHIMS_QUEUE_LOCK_COUNT))
  }

  /// Guards the watches, and the call statistics of registrations.
  static var watches: Lock { Lock(queue: UInt32(SHIMS_WATCH_LOCK)) }

  init(word: UnsafeMutablePointer<UInt32>) { self.word = word }

  private init(_ index: UInt32) { word = shims_get_lock(index).unsafelyUnwrapped }
  private init(queue index: UInt32) { word = shims_get_queue_lock(index).unsafelyUnwrapped }

  private var state: UnsafeMutablePointer<Atomic<UInt32>> {
    UnsafeMutableRawPointer(word).assumingMemoryBound(to: Atomic<UInt32>.self)
  }

  @inline(never) @_optimize(speed) func lock() { lockInline() }
  @inline(never) @_optimize(speed) func unlock() { unlockInline() }

  func tryLock() -> Bool {
    guard take() else { return false }
    checkBeforeLocking()
    noteLocked(byTrying: true)
    return true
  }

  // The most frequent operations inline the next two functions. Inlining them elsewhere would only
  // make the library larger.

  func lockInline() {
    checkBeforeLocking()
    if _slowPath(!take()) { lockSlowly() }
    noteLocked(byTrying: false)
  }

  func unlockInline() {
    noteUnlocked()
    // Release: pairs with the acquire in `take`. The exchange returns 2 if other threads may be
    // sleeping. A thread that stored 2 before this exchange is woken now. A thread that stores 2
    // after this exchange finds the lock free, and acquires it.
    // order: lock
    if _slowPath(state.pointee.exchange(0, ordering: .releasing) == 2) { wakeNext() }
    checkAfterUnlocking()  //~ unlocked_twice
  }

  /// Whether the lock is free at this moment. This load pairs with `take`. Suppose that a thread
  /// changes guarded data without the lock, and then checks whether the lock is free. Either the
  /// thread finds the lock held, or every thread that takes the lock later sees the change.
  var isFree: Bool {
    state.pointee.load(ordering: .sequentiallyConsistent) == 0  // order: first_invoker
  }

  private func wakeNext() { shims_futex_wake(word, 1) }

  /// Acquires the lock if it is free. Acquire: pairs with the release in `unlock`.
  private func take() -> Bool {
    state.pointee.compareExchange(
      // order: lock
      expected: 0, desired: 1, successOrdering: .acquiring, failureOrdering: .relaxed
    ).exchanged
  }

  @inline(never) private func lockSlowly() {
    // Double the pause each time, so that the thread that holds the lock can release it and take it
    // again several times, while the data is still in its processor's cache.
    var pauses = 4
    while pauses <= 256 {
      for _ in 0..<pauses { shims_pause() }
      if state.pointee.load(ordering: .relaxed) == 0 && take() { return }
      pauses *= 2
    }
    // Store 2, because other threads may be sleeping. Before the kernel lets this thread sleep, it
    // compares the word with 2 again, so this thread cannot miss an unlock.
    while state.pointee.exchange(2, ordering: .acquiring) != 0 {  // order: lock
      shims_futex_wait(word, 2, .max)
    }
  }

  /// Releases the lock and sleeps until another thread changes `event` and wakes this thread, or
  /// until the given moment. The thread may also wake up spuriously. It takes the lock again before
  /// this function returns.
  func sleep(with event: UnsafeMutablePointer<Atomic<UInt32>>, until moment: UInt64) {
    checkBeforeSleeping()
    let value = event.pointee.load(ordering: .relaxed)
    unlock()
    shims_futex_wait(Self.address(event), value, moment)
    lock()
  }

  static func wakeAll(_ event: UnsafeMutablePointer<Atomic<UInt32>>) {
    event.pointee.wrappingAdd(1, ordering: .relaxed)
    shims_futex_wake(address(event), .max)
  }

  private static func address(
    _ event: UnsafeMutablePointer<Atomic<UInt32>>
  ) -> UnsafeMutablePointer<UInt32> {
    UnsafeMutableRawPointer(event).assumingMemoryBound(to: UInt32.self)
  }

  // MARK: - Fork

  /// Visits all locks in lock order.
  private static func forEach(_ body: (Lock) -> Void) {
    for index in 0..<Stripe.count { body(Stripe(of: index).mutex) }
    for index in 0..<UInt32(SHIMS_LOCK_COUNT) { body(Lock(index)) }
    for index in 0..<UInt32(SHIMS_WATCH_LOCK) &+ 1 { body(Lock(queue: index)) }
  }

  static func lockAll() { forEach { $0.lock() } }

  static func unlockAll() { forEach { $0.unlock() } }
}

/// One of 32 locks, chosen by the index of a multicast. It guards the multicasts that share it,
/// except for the fields that invocations read. It also guards the pool that contains the
/// registrations of these multicasts.
struct Stripe {
  static let count = UInt32(SHIMS_STRIPE_COUNT)

  private let state: UnsafeMutablePointer<shims_stripe>

  init(of multicast: UInt32) {
    state = shims_get_stripe(multicast).unsafelyUnwrapped
  }

  var mutex: Lock { Lock(word: shims_get_stripe_lock(state).unsafelyUnwrapped) }

  func lock() { mutex.lock() }
  func unlock() { mutex.unlock() }
  func lockInline() { mutex.lockInline() }
  func unlockInline() { mutex.unlockInline() }
  var isFree: Bool { mutex.isFree }

  static func == (a: Stripe, b: Stripe) -> Bool { a.state == b.state }

  func pool(in directory: SlabDirectory) -> SlotPool {
    SlotPool(shims_get_stripe_pool(state), of: directory, smallestSlabShift: 4, slabsOfASize: 4)
  }
}

/// Annotations for the thread sanitizer (see `shims.h`). The annotations are empty in other builds.
extension Lock {
  private func noteLocked(byTrying: Bool) {
    #if MULTICAST_SANITIZE_THREAD
      shims_tsan_did_lock(word, byTrying)
    #endif
  }

  private func noteUnlocked() {
    #if MULTICAST_SANITIZE_THREAD
      shims_tsan_will_unlock(word)
    #endif
  }
}

/// Checks that threads take locks in the lock order. Also checks that they hold no lock while they
/// call the caller's functions or execute a heavy fence, because both can take arbitrarily long.
///
/// These checks also detect some callers that are not supported: a signal handler or an allocator
/// that runs while its thread holds a lock, and the child of a `vfork`.
extension Lock {
  func checkBeforeLocking(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      CallerCode.checkIsSupported(check)
      let (rank, held) = (shims_checks_rank(word), shims_checks_get_held())
      if held == Self.allOfThem { return }
      check.that(rank > 0, "a lock is one of the library's")
      check.that(held >> rank == 0, "locks are taken in their order", rank, held)
      shims_checks_set_held(held | 1 << rank)
    #endif
  }

  /// Called after the lock has been released. If this check came first, it would not detect a
  /// signal handler that runs just before the release, and the handler would wait for the lock
  /// forever.
  func checkAfterUnlocking(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let (rank, held) = (shims_checks_rank(word), shims_checks_get_held())
      if held == Self.allOfThem { return }
      Check(file, line).that(
        held & 1 << rank != 0, "the thread that unlocks a lock holds it", rank, held)
      shims_checks_set_held(held & ~(1 << rank))
    #endif
  }

  func checkBeforeSleeping(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let (rank, held) = (shims_checks_rank(word), shims_checks_get_held())
      Check(file, line).that(
        held == 1 << rank, "a thread that sleeps holds one lock", rank, held)
    #endif
  }

  static func checkNoneIsHeld(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let held = shims_checks_get_held()
      Check(file, line).that(held == 0, "no lock is held", held)
    #endif
  }

  /// A fork takes all locks, including several of the same rank, so the order is not checked during
  /// a fork. The child starts with no lock held.
  static func checkFork(holdsAll: Bool) {
    #if MULTICAST_INTERNAL_CHECKS
      if holdsAll { checkNoneIsHeld() }
      shims_checks_set_held(holdsAll ? allOfThem : 0)
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    private static let allOfThem = UInt32.max
  #endif
}

/// Counts the forks between the process in which the library started and the current process.
enum Fork {
  /// The number of forks. It changes only in the child of a fork, while the child has one thread.
  nonisolated(unsafe) private(set) static var generation: UInt32 = 0

  static func didBecomeChild() { generation &+= 1 }
}
