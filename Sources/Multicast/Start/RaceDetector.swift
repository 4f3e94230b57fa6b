import MulticastShims

/// Annotations for race detectors (thread sanitizer, Helgrind and DRD). These tools report
/// unordered accesses by two threads.
///
/// The annotations state that an add happens before the calls to the delegate, and that these calls
/// happen before the end of the removal. The two relations use separate addresses. If they used the
/// same address, calls on two threads would appear to be ordered, and the tools would miss real
/// races between these calls.
enum RaceDetector {
  /// Set once when the library starts, before the first multicast exists. If a race detector is
  /// present, the library treats every multicast as watched, so that the fast path of an invocation
  /// needs no annotations.
  nonisolated(unsafe) private(set) static var isPresent = false

  static func start() { isPresent = shims_races_are_detected() }

  /// - Parameter slot: The slot of the registration.
  static func didAdd(_ slot: UnsafeMutableRawPointer) { happensBefore(slot) }
  static func willCall(_ slot: UnsafeMutableRawPointer) { happensAfter(slot) }
  static func didCall(_ slot: UnsafeMutableRawPointer) { happensBefore(slot + 8) }
  static func didRemove(_ slot: UnsafeMutableRawPointer) { happensAfter(slot + 8) }

  /// States that everything this thread has done so far happens before the next steps of each
  /// thread that later calls `happensAfter` with this address.
  static func happensBefore(_ address: UnsafeMutableRawPointer?) {
    if isPresent { shims_happens_before(address) }
  }

  static func happensAfter(_ address: UnsafeMutableRawPointer?) {
    if isPresent { shims_happens_after(address) }
  }
}
