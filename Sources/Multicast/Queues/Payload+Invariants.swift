import Synchronization

extension Payload {
  /// - Parameter references: How many there are now.
  @inline(__always)
  func checkInvariants(
    _ references: Int, _ file: StaticString = #fileID, _ line: UInt = #line
  ) {
    #if MULTICAST_INTERNAL_CHECKS
      // A block that was freed and reused has more, or less than none.
      Check(file, line).that(
        references >= 0 && references < 1 << 32, "the references to a payload are counted",
        UInt64(truncatingIfNeeded: references))
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    var referenceCount: UInt64 {
      UInt64(truncatingIfNeeded: header.pointee.references.load(ordering: .relaxed))
    }
  #endif
}
