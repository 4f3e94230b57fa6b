import Synchronization

/// The forks between the process in which the library was started and this one.
enum Fork {
  /// The number of forks. Changed only in the child of a fork, which has a single thread then.
  nonisolated(unsafe) private(set) static var generation: UInt32 = 0

  static func didBecomeChild() { generation &+= 1 }
}
