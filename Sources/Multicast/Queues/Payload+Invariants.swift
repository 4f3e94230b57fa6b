import Synchronization

extension Payload {
  /// - Parameter references: How many there are now.
  @inline(__always)
  func checkInvariants(
    _ references: UInt32, _ file: StaticString = #fileID, _ line: UInt = #line
  ) {
    #if MULTICAST_INTERNAL_CHECKS
      // A block that was freed and reused has more, or less than none.
      Check(file, line).that(
        references < 1 << 31, "the references to a payload are counted", UInt64(references))
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    var referenceCount: UInt64 { UInt64(counts.references) }
  #endif
}
