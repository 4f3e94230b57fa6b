import MulticastShims

/// Thread sanitizer, Helgrind or DRD: tools that find accesses of two threads that nothing orders.
///
/// They are told that an add happens before the calls of the delegate, and that these happen before
/// the end of the removal. The two have different addresses: so calls on two threads are not
/// ordered among each other, and true races between them are found.
enum RaceDetector {
  /// Set once, when the library starts, before the first multicast. Then each multicast is treated
  /// as if it was watched, so that none of this is on the plain path of an invocation.
  nonisolated(unsafe) private(set) static var isPresent = false

  static func start() { isPresent = shims_races_are_detected() }

  /// - Parameter slot: That of the registration.
  static func didAdd(_ slot: UnsafeMutableRawPointer) { happensBefore(slot) }
  static func willCall(_ slot: UnsafeMutableRawPointer) { happensAfter(slot) }
  static func didCall(_ slot: UnsafeMutableRawPointer) { happensBefore(slot + 8) }
  static func didRemove(_ slot: UnsafeMutableRawPointer) { happensAfter(slot + 8) }

  /// What this thread has done is seen by the threads that come to `happensAfter` later.
  static func happensBefore(_ address: UnsafeMutableRawPointer?) {
    if isPresent { shims_happens_before(address) }
  }

  static func happensAfter(_ address: UnsafeMutableRawPointer?) {
    if isPresent { shims_happens_after(address) }
  }
}
