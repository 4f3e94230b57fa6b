import MulticastShims

/// Locks are taken in their order; and none is held where one does not know for how long.
///
/// That finds some uses that are not supported as well: a signal handler or an allocator that calls
/// the library in the middle of a call, where that comes to a lock; and the child of a `vfork`.
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

  /// After: until then a signal handler would come to a lock that is held.
  @inline(__always)
  func checkAfterUnlocking(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let (rank, held) = (shims_checks_rank(mutex), shims_checks_get_held())
      if held == Self.allOfThem { return }
      Check(file, line).that(
        held & 1 << rank != 0, "a lock is unlocked by who holds it", UInt64(rank), UInt64(held))
      shims_checks_set_held(held & ~(1 << rank))
    #endif
  }

  /// Who sleeps with one lock holds no other.
  @inline(__always)
  func checkBeforeSleeping(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let (rank, held) = (shims_checks_rank(mutex), shims_checks_get_held())
      Check(file, line).that(
        held == 1 << rank, "who sleeps holds one lock", UInt64(rank), UInt64(held))
    #endif
  }

  @inline(__always)
  static func checkNoneIsHeld(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let held = shims_checks_get_held()
      Check(file, line).that(held == 0, "no lock is held", UInt64(held))
    #endif
  }

  /// In a fork all of them are taken, several of a rank too; and in the child there are new ones.
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
