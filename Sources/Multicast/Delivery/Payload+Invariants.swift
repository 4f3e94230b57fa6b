import Synchronization

extension Payload {
  /// - Parameter holders: How many there are now.
  @inline(__always)
  func checkInvariants(
    _ holders: Int, _ file: StaticString = #fileID, _ line: UInt = #line
  ) {
    #if MULTICAST_INTERNAL_CHECKS
      // What was freed and is somebody else's by now has more, or less than none.
      Check(file, line).that(
        holders >= 0 && holders < 1 << 32, "who holds a payload is counted",
        UInt64(truncatingIfNeeded: holders))
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    var holderCount: UInt64 {
      UInt64(truncatingIfNeeded: header.pointee.holders.load(ordering: .relaxed))
    }
  #endif
}
