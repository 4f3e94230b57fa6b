import MulticastShims

/// Locks are taken in their order. No lock is held where the time is not bounded: around functions
/// of the caller's, and around the heavy fence.
///
/// This also finds some uses that are not supported: a signal handler or an allocator that calls
/// the library while the library holds a lock; and the child of a `vfork`.
extension Lock {
  func checkBeforeLocking(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      Self.checkBeforeLocking(word, Check(file, line))
    #endif
  }

  func checkAfterUnlocking(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      Self.checkAfterUnlocking(word, Check(file, line))
    #endif
  }

  func checkBeforeSleeping(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      Self.checkBeforeSleeping(word, Check(file, line))
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
