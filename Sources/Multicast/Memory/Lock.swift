import MulticastShims

/// A mutex in static storage. The locks of queues and watches are `SpinningLock`s.
///
/// Locks are taken in this order: a stripe's, a lifetime's, the names', the slabs', the waits', a
/// queue's, the watches'. While any lock is held, no function of the caller's runs (except those of
/// an allocator) and no heavy fence is made.
struct Lock {
  let mutex: UnsafeMutablePointer<pthread_mutex_t>

  /// Guards the members of the lifetimes whose indices share this lock. A thread holds one such
  /// lock at a time.
  static func lifetimes(_ index: UInt32) -> Lock {
    Lock(mutex: shims_get_lifetime_mutex(index))
  }

  /// Guards the addition of names to broadcasters.
  static var names: Lock { Lock(mutex: shims_get_name_mutex()) }

  /// Guards the slab directories, the pools of slots and the start of the library.
  static var slabs: Lock { Lock(mutex: shims_get_slab_mutex()) }

  /// Guards the wait graph, and the removals that wait for calls to return.
  static var waits: Lock { Lock(mutex: shims_get_wait_mutex()) }

  func lock() {
    checkBeforeLocking()
    shims_lock(mutex)
  }

  /// Takes the lock if no thread holds it.
  func tryLock() -> Bool {
    guard shims_try_lock(mutex) else { return false }
    checkBeforeLocking()
    return true
  }

  func unlock() {
    shims_unlock(mutex)
    checkAfterUnlocking()  //~ unlocked_twice
  }

  /// Visits every mutex, in the order in which they are taken.
  private static func forEach(_ body: (Lock) -> Void) {
    var index: UInt32 = 0
    while index < Stripe.count {
      body(Stripe(of: index).mutex)
      index &+= 1
    }
    index = 0
    while index < UInt32(SHIMS_LIFETIME_MUTEX_COUNT) {
      body(lifetimes(index))
      index &+= 1
    }
    body(names)
    body(slabs)
    body(waits)
  }

  /// Takes all locks of the library, for a fork.
  static func lockAll() {
    forEach { $0.lock() }
    SpinningLock.forEach { $0.lock() }
  }

  /// In the parent, and in the child, whose only thread holds all locks.
  static func unlockAll() {
    forEach { $0.unlock() }
    SpinningLock.forEach { $0.unlock() }
  }
}

/// One of 32 locks, chosen by the index of a multicast. It guards the multicasts that share it,
/// except the fields that invocations read; and the pool of their registrations.
struct Stripe {
  static let count = UInt32(SHIMS_STRIPE_COUNT)

  private let state: UnsafeMutablePointer<shims_stripe>

  init(of multicast: UInt32) {
    state = shims_get_stripe(multicast).unsafelyUnwrapped
  }

  var mutex: Lock {
    Lock(mutex: shims_get_stripe_mutex(state))
  }

  func lock() { mutex.lock() }
  func unlock() { mutex.unlock() }

  static func == (a: Stripe, b: Stripe) -> Bool { a.state == b.state }

  /// The pool of the registrations of its multicasts.
  func pool(in directory: SlabDirectory) -> SlotPool {
    SlotPool(shims_get_stripe_pool(state), of: directory, smallestSlabShift: 4, slabsOfASize: 4)
  }
}

/// Locks are taken in their order. No lock is held where the time is not bounded: around functions
/// of the caller's, and around the heavy fence.
///
/// This also finds some uses that are not supported: a signal handler or an allocator that calls
/// the library while the library holds a lock; and the child of a `vfork`.
extension Lock {
  func checkBeforeLocking(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      Self.checkBeforeLocking(mutex, Check(file, line))
    #endif
  }

  func checkAfterUnlocking(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      Self.checkAfterUnlocking(mutex, Check(file, line))
    #endif
  }

  func checkBeforeSleeping(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      Self.checkBeforeSleeping(mutex, Check(file, line))
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    static func checkBeforeLocking(_ address: UnsafeRawPointer, _ check: Check) {
      CallerCode.checkIsSupported(check)
      let rank = shims_checks_rank(address)
      let held = shims_checks_get_held()
      if held == allOfThem { return }
      check.that(rank > 0, "a lock is one of the library's")
      check.that(
        held >> rank == 0, "locks are taken in their order", UInt64(rank), UInt64(held))
      shims_checks_set_held(held | 1 << rank)
    }

    /// Called after unlocking: before, a signal handler would still find the lock held.
    static func checkAfterUnlocking(_ address: UnsafeRawPointer, _ check: Check) {
      let (rank, held) = (shims_checks_rank(address), shims_checks_get_held())
      if held == allOfThem { return }
      check.that(
        held & 1 << rank != 0, "the thread that unlocks a lock holds it", UInt64(rank), UInt64(held)
      )
      shims_checks_set_held(held & ~(1 << rank))
    }

    /// A sleeping thread holds the lock of its sleep, and no other.
    static func checkBeforeSleeping(_ address: UnsafeRawPointer, _ check: Check) {
      let (rank, held) = (shims_checks_rank(address), shims_checks_get_held())
      check.that(
        held == 1 << rank, "a thread that sleeps holds one lock", UInt64(rank), UInt64(held))
    }
  #endif

  static func checkNoneIsHeld(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let held = shims_checks_get_held()
      Check(file, line).that(held == 0, "no lock is held", UInt64(held))
    #endif
  }

  /// A fork takes all locks, several of a rank too. The child has new ones.
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

extension SpinningLock {
  func checkBeforeLocking(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      Lock.checkBeforeLocking(word, Check(file, line))
    #endif
  }

  func checkAfterUnlocking(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      Lock.checkAfterUnlocking(word, Check(file, line))
    #endif
  }

  func checkBeforeSleeping(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      Lock.checkBeforeSleeping(word, Check(file, line))
    #endif
  }
}
