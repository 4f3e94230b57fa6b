import Synchronization

/// Decides which adds remove deallocated weak delegates: the next one is due after as many adds as
/// delegates remained the last time, but at least 64. So an add costs O(1), amortized, and the
/// number of deallocated delegates that keep memory is at most that of the others, or 64.
///
/// All orderings are relaxed: with concurrent adds, a removal may happen twice or slightly later.
struct PruneSchedule: ~Copyable {
  private let additions = Atomic(0)
  private let limit = Atomic(64)

  /// Counts an add. Returns true if it should remove deallocated delegates and then call `reset`.
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
