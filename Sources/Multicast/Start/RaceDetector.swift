import MulticastShims

/// Annotations for race detectors (thread sanitizer, Helgrind and DRD), which find accesses of two
/// threads that nothing orders.
///
/// The annotations say that an add happens before the calls of the delegate, and that these calls
/// happen before the end of the removal. They use a separate address for each of the two relations,
/// so that calls on two threads are not ordered with each other, and real races between them are
/// found.
enum RaceDetector {
  /// Set once when the library starts, before the first multicast exists. If it is set, every
  /// multicast is treated as watched, so that the fast path of an invocation contains none of these
  /// annotations.
  nonisolated(unsafe) private(set) static var isPresent = false

  static func start() { isPresent = shims_races_are_detected() }

  /// - Parameter slot: The slot of the registration.
  static func didAdd(_ slot: UnsafeMutableRawPointer) { happensBefore(slot) }
  static func willCall(_ slot: UnsafeMutableRawPointer) { happensAfter(slot) }
  static func didCall(_ slot: UnsafeMutableRawPointer) { happensBefore(slot + 8) }
  static func didRemove(_ slot: UnsafeMutableRawPointer) { happensAfter(slot + 8) }

  /// Everything that this thread has done so far happens before the next steps of any thread that
  /// calls `happensAfter` later.
  static func happensBefore(_ address: UnsafeMutableRawPointer?) {
    if isPresent { shims_happens_before(address) }
  }

  static func happensAfter(_ address: UnsafeMutableRawPointer?) {
    if isPresent { shims_happens_after(address) }
  }
}
