import Synchronization

/// The position of the oldest call in a ring. The thread that runs the queue moves it for each call
/// that it takes out; it needs no lock for that as long as the head is *open*.
///
/// That thread opens the head under the queue's lock. Every other operation that takes calls out or
/// changes them, or that needs that thread's attention, closes it under the lock. From then on the
/// position is fixed until the lock is released, and that thread takes the lock before it takes out
/// the next call, and when it ends the run. Positions only rise, also with the next occupant of the
/// slot, and only the innermost run is open. So if the head is found open at the position at which
/// a run has left it, nothing has happened meanwhile that concerns this run.
///
/// Every change of the head is acquire and release, or is made under the lock: what the run has
/// published in its frame before, the thread that closes the head sees.
struct RingHead: ~Copyable {
  /// The position, and in the lowest bit whether it is open.
  private let word: Atomic<UInt64>

  private static let open: UInt64 = 1

  /// The position. While the head is open, it may have moved already.
  // order: position
  var position: UInt64 { @inline(__always) get { word.load(ordering: .acquiring) >> 1 } }

  // MARK: - Under the lock

  @inline(__always) func close() {
    if word.load(ordering: .acquiring) & Self.open == 0 { return }  // order: position
    word.bitwiseAnd(~Self.open, ordering: .acquiringAndReleasing)  //~ head_not_closed
  }

  /// Sets the position of a head that is closed.
  @inline(__always) func move(to position: UInt64) {
    word.store(position << 1, ordering: .releasing)  // order: head_under_lock
  }

  /// Opens a head that is closed, at a position.
  @inline(__always) func open(at position: UInt64) {
    word.store(position << 1 | Self.open, ordering: .releasing)  // order: head_under_lock
  }

  // MARK: - For the thread that runs the queue

  /// Takes out the call at this position, if the head is still open there.
  @inline(__always) func take(at position: UInt64) -> Bool {
    replace(position << 1 | Self.open, by: (position &+ 1) << 1 | Self.open)
  }

  /// Closes the head if it is still open at this position.
  ///
  /// - Returns: whether it was.
  @inline(__always) func close(at position: UInt64) -> Bool {
    replace(position << 1 | Self.open, by: position << 1)
  }

  @inline(__always) private func replace(_ old: UInt64, by new: UInt64) -> Bool {
    // order: head
    word.compareExchange(expected: old, desired: new, ordering: .acquiringAndReleasing).exchanged
  }
}
