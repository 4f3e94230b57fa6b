extension Departures {
  /// Who departs, and whom threads wait for, has been removed. The lock of calls is held.
  @inline(__always)
  static func checkInvariants(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      departing.checkLeaving(file, line)
      check.that(
        sleepersForThreads >= 0 && sleepersForThreads <= sleepers,
        "who sleeps for a thread sleeps", UInt64(truncatingIfNeeded: sleepersForThreads),
        UInt64(truncatingIfNeeded: sleepers))
      var (own, count) = (waiting, UInt64(0))
      while let current = own {
        current.pointee.running.checkLeaving(file, line)
        own = current.pointee.next
        count &+= 1
        check.that(count < 1 << 20, "a list has an end", count)
      }
    #endif
  }
}
