import MulticastShims

/// Locks are taken in their order. No lock is held where the time is not bounded: around functions
/// of the caller's, and around the heavy fence.
///
/// This also finds some uses that are not supported: a signal handler or an allocator that calls
/// the library while the library holds a lock; and the child of a `vfork`.
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

  /// Called after unlocking: before, a signal handler would still find the lock held.
  func checkAfterUnlocking(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let (rank, held) = (shims_checks_rank(word), shims_checks_get_held())
      if held == Self.allOfThem { return }
      Check(file, line).that(
        held & 1 << rank != 0, "the thread that unlocks a lock holds it", rank, held)
      shims_checks_set_held(held & ~(1 << rank))
    #endif
  }

  /// A sleeping thread holds the lock of its sleep, and no other.
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
