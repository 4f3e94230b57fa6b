import Synchronization

/// One event at a time is on its way to a closure that is called once.
final class Claim: Sendable {
  private let isTaken = Atomic(false)

  /// Exists as long as the event is on its way. If a delivery drops the event, another event may be
  /// taken.
  final class Taken: Sendable {
    fileprivate let claim: Claim

    fileprivate init(_ claim: Claim) { self.claim = claim }

    deinit { claim.isTaken.store(false, ordering: .relaxed) }
  }

  /// nil: another event is on its way.
  func take() -> Taken? {
    // One of the threads gets false. Nothing else depends on the flag.
    isTaken.exchange(true, ordering: .relaxed) ? nil : Taken(self)
  }
}
