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
      let (waiting, capacity) = (state.ring.count, UInt64(state.capacity))
      check.that(
        waiting <= capacity, "no more calls wait than there is room for", waiting, capacity)
      check.that(
        state.quietEnd == 0 || state.quietEnd <= state.ring.knownHead &+ capacity,
        "a call is only appended where there is room", state.quietEnd, state.ring.knownHead)
      state.ring.check(check)
      // The statistics of a destroyed queue cannot be read.
      guard isCurrent, handle.kind == .queue else { return }
      let statistics = state.statistics
      check.that(
        queued
          >= waiting &+ statistics.dropped &+ statistics.retracted &+ statistics.coalesced,
        "the statistics add up", queued, waiting)
    }
  #endif
}
