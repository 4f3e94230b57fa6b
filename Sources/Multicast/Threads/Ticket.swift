import Synchronization

/// One counter for the whole process, which orders invocations and what writers retire.
///
/// An invocation remembers the count from before it published its frame; a writer that replaces
/// something draws the next ticket afterwards. An invocation whose count has reached the ticket
/// cannot meet what was replaced. One counter for all multicasts, so that the epochs a thread
/// writes into its frames never go back.
enum Ticket {
  private static let counter = Atomic<UInt64>(1)
  private static let fenced = Atomic<UInt64>(0)
  private static let hasEverFailed = Atomic<Bool>(false)

  /// Whether a fence was refused: then there may be removals that never end.
  static var isBroken: Bool { hasEverFailed.load(ordering: .acquiring) }

  /// Acquire: who reads a ticket sees what its writer changed before drawing it.
  @inline(__always) static var last: UInt64 { counter.load(ordering: .acquiring) }

  static func draw() -> UInt64 {
    counter.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
  }

  /// Has every thread see what was changed before the last ticket was drawn, by this writer or by
  /// any other: invocations that a look at the frames does not find from now on do see it.
  ///
  /// - Returns: false when the kernel refuses: nothing may be freed then.
  static func fence() -> Bool {
    let last = self.last
    guard Fence.heavy() else {
      hasEverFailed.store(true, ordering: .releasing)
      return false
    }
    // Release: who finds a ticket fenced, and then looks at the frames, looks after the fence.
    fenced.max(last, ordering: .releasing)
    return true
  }

  static func isFenced(_ ticket: UInt64) -> Bool { ticket <= fenced.load(ordering: .acquiring) }
}
