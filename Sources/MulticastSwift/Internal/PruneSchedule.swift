import Synchronization

/// When weak delegates that have ended are looked for: after so many adds as there were delegates
/// left the last time. So an add costs O(1), amortized, and at most as many ended delegates as
/// there are others, or 64, keep their memory.
///
/// All orderings are relaxed: threads that add at the same time may look twice, or a little later.
struct PruneSchedule: ~Copyable {
  private let additions = Atomic(0)
  private let limit = Atomic(64)

  /// Counts an add.
  func isDueAfterAdd() -> Bool {
    let count = additions.load(ordering: .relaxed) + 1
    additions.store(count, ordering: .relaxed)
    return count >= limit.load(ordering: .relaxed)
  }

  func reset(to count: Int) {
    additions.store(0, ordering: .relaxed)
    limit.store(max(64, count), ordering: .relaxed)
  }
}
