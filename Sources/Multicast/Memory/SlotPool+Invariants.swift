import Synchronization

extension SlotPool {
  /// Nobody lives in a slot that is on the list of vacant ones, or is just about to move in. The
  /// slab lock is held.
  @inline(__always)
  func checkInvariants(
    of directory: SlabDirectory, _ file: StaticString = #fileID, _ line: UInt = #line
  ) {
    #if MULTICAST_INTERNAL_CHECKS
      check(directory, Check(file, line))
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    private func check(_ directory: SlabDirectory, _ check: Check) {
      check.that(
        nextUnused <= endUnused, "what was never used is within the newest slab",
        UInt64(nextUnused), UInt64(endUnused))
      check.walk(firstVacant) { index in
        check.that(
          index < nextUnused, "a vacant slot was used before", UInt64(index), UInt64(nextUnused))
        let slot = directory.slot(index).unsafelyUnwrapped
        let header = slot.assumingMemoryBound(to: SlotHeader.self)
        let id = header.pointee.id.load(ordering: .relaxed)
        check.that(
          Handle.kind(of: id) == Handle.Kind.vacant, "nobody lives in a vacant slot", UInt64(index),
          Handle.kind(of: id))
        return header.pointee.nextVacant.load(ordering: .relaxed)
      }
    }
  #endif
}
