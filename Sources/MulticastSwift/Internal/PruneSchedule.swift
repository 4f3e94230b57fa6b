import Synchronization

/// Determines which adds remove deallocated weak delegates. If n delegates remain after one such
/// add, the next removal is due after n further adds, or after 64 if n is smaller. Therefore an add
/// takes amortized O(1) time, and the number of deallocated delegates whose memory has not been
/// freed is at most n or 64, whichever is larger.
///
/// All orderings are relaxed, so concurrent adds may cause a removal to happen twice or slightly
/// late.
struct PruneSchedule: ~Copyable {
  private let additions = Atomic(0)
  private let limit = Atomic(64)

  /// Counts an add. Returns true if the caller should remove deallocated delegates and then call
  /// `reset`.
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
