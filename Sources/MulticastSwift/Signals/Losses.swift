import Synchronization

/// A count that closures of a signal refer to, without the signal.
final class Losses: Sendable {
  private let number = Atomic(0)

  var count: Int { number.load(ordering: .relaxed) }

  func add() { number.add(1, ordering: .relaxed) }
}
