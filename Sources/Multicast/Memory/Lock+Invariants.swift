import MulticastShims

/// Locks are taken in their order. No lock is held where the time is not bounded: around functions
/// of the caller's, and around the heavy fence.
///
/// This also finds some uses that are not supported: a signal handler or an allocator that calls
/// the library while the library holds a lock; and the child of a `vfork`.
extension Lock {
  @inline(__always)
  func checkBeforeLocking(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      CallerCode.checkIsSupported(check)
      let rank = shims_checks_rank(mutex)
      let held = shims_checks_get_held()
      if held == Self.allOfThem { return }
      check.that(rank > 0, "a lock is one of the library's")
      check.that(
        held >> rank == 0, "locks are taken in their order", UInt64(rank), UInt64(held))
      shims_checks_set_held(held | 1 << rank)
    #endif
  }

  /// Called after unlocking: before, a signal handler would still find the lock held.
  @inline(__always)
  func checkAfterUnlocking(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let (rank, held) = (shims_checks_rank(mutex), shims_checks_get_held())
      if held == Self.allOfThem { return }
      Check(file, line).that(
        held & 1 << rank != 0, "the thread that unlocks a lock holds it", UInt64(rank), UInt64(held)
      )
      shims_checks_set_held(held & ~(1 << rank))
    #endif
  }

  /// A thread that sleeps holds the lock that it sleeps with, and no other.
  @inline(__always)
  func checkBeforeSleeping(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let (rank, held) = (shims_checks_rank(mutex), shims_checks_get_held())
      Check(file, line).that(
        held == 1 << rank, "a thread that sleeps holds one lock", UInt64(rank), UInt64(held))
    #endif
  }

  @inline(__always)
  static func checkNoneIsHeld(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let held = shims_checks_get_held()
      Check(file, line).that(held == 0, "no lock is held", UInt64(held))
    #endif
  }

  /// A fork takes all locks, several of a rank too. The child has new ones.
  @inline(__always)
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
