import CMulticast

/// The result of a removal.
public enum Removal: Hashable, Sendable {
  /// The registration has ended: no thread is calling the delegate, and none ever will.
  case ended
  /// The registration has been removed, but one of its calls is still running, on this thread or on
  /// a thread that is waiting for this thread.
  case pending
  /// The registration has been removed, but one of its calls was still running on another thread
  /// when the wait timed out.
  case timedOut
  /// The registration had already been removed.
  case notFound
  /// The registration has been removed, but the system has refused a memory barrier, so it is
  /// unknown whether a call is still running. The registration's objects are leaked.
  case unknown

  init(_ status: Multicast.Status) {
    switch status {
    case .ok: self = .ended
    case .pending: self = .pending
    case .timeout: self = .timedOut
    case .system: self = .unknown
    default: self = .notFound
    }
  }
}
