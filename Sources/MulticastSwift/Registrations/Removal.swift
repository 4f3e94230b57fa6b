import MulticastHeader

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

  init(_ status: multicast_status) {
    switch status {
    case MULTICAST_OK.rawValue: self = .ended
    case MULTICAST_PENDING.rawValue: self = .pending
    case MULTICAST_ERROR_TIMEOUT.rawValue: self = .timedOut
    case MULTICAST_ERROR_SYSTEM.rawValue: self = .unknown
    default: self = .notFound
    }
  }
}
