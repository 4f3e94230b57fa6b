import Synchronization

extension SlotPool {
  /// Slots on the list of vacant ones have no occupant. The pool's lock is held.
  @inline(__always)
  func checkInvariants(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      check(Check(file, line))
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    @inline(never)
    private func check(_ check: Check) {
      check.that(
        nextUnused <= endUnused, "the unused slots are within the newest slab",
        UInt64(nextUnused), UInt64(endUnused))
      check.walk(firstVacant) { index in
        let id = header(index).pointee.id.load(ordering: .relaxed)
        check.that(
          id.kind == .vacant, "a vacant slot has no occupant", UInt64(index), id.kind.rawValue)
        return header(index).pointee.link.load(ordering: .relaxed)
      }
    }
  #endif
}
