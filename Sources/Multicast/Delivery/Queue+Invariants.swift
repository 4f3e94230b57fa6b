import Synchronization

extension Queue {
  /// The lock is held.
  @inline(__always)
  func checkInvariants(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      check(Check(file, line))
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    @inline(never)
    private func check(_ check: Check) {
      let (waiting, capacity) = (storage.pointee.ring.count, UInt64(storage.pointee.capacity))
      check.that(
        waiting <= capacity, "no more calls wait than there is room for", waiting, capacity)
      storage.pointee.ring.check(check)
      // Nobody can read the statistics of one that has been destroyed.
      guard isCurrent, Handle.kind(of: handle) == Handle.Kind.queue else { return }
      let statistics = storage.pointee.statistics
      check.that(
        statistics.queued == waiting &+ statistics.delivered &+ statistics.dropped
          &+ statistics.retracted &+ statistics.coalesced,
        "the statistics add up", statistics.queued, waiting)
    }
  #endif
}
