import Synchronization

/// Counts the forks between the process in which the library started and the current process.
enum Fork {
  /// The number of forks. It changes only in the child of a fork, while the child has one thread.
  nonisolated(unsafe) private(set) static var generation: UInt32 = 0

  static func didBecomeChild() { generation &+= 1 }
}
