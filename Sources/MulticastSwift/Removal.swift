import CMulticast

/// The result of a removal.
public enum Removal: Hashable, Sendable {
  /// The registration has ended: no thread is in a call of it, and none ever will be.
  case ended
  /// Removed, but a call still runs: on this thread, or on a thread that waits for this thread.
  case pending
  /// Removed, but a call still runs on another thread, and the time was up.
  case timedOut
  /// There was no such registration any more.
  case notFound
  /// Removed, but the system refused a memory barrier: it is unknown whether a call still runs. The
  /// registration's objects are never freed.
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
