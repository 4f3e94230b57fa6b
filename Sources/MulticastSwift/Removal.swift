import MulticastHeader

/// What became of a removal.
public enum Removal: Hashable, Sendable {
  /// The registration has ended: no thread is in a call of it, and none ever will be.
  case ended
  /// Removed, but a call of it still runs: on this thread, or on one that waits for this thread.
  case pending
  /// Removed, but a call of it still runs on another thread, and the time was up.
  case timedOut
  /// There was no such registration any more.
  case notFound
  /// Removed, but the system refused a memory barrier: it is unknown whether a call still runs.
  /// What the registration refers to is never freed.
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
