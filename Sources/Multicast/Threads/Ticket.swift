import Synchronization

/// One counter for the whole process, which orders invocations and what writers retire.
///
/// An invocation remembers the count from before it published its frame; a writer that replaces
/// something draws the next ticket afterwards. An invocation whose count has reached the ticket
/// cannot meet what was replaced. One counter for all multicasts, so that the epochs a thread
/// writes into its frames never go back.
enum Ticket {
  private static let counter = Atomic<UInt64>(1)

  /// Acquire: who reads a ticket sees what its writer changed before drawing it.
  @inline(__always) static var last: UInt64 { counter.load(ordering: .acquiring) }

  static func draw() -> UInt64 {
    counter.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
  }
}
