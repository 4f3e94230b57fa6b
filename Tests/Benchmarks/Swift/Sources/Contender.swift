/// What the contenders call.
protocol Listener: AnyObject, Sendable {
  func hear(_ number: Int)
}

/// `@unchecked`: one task uses it.
final class Counter: Listener, @unchecked Sendable {
  private(set) var count = 0

  func hear(_ number: Int) { count &+= number }
}

/// A way to call many delegates, without keeping them alive unless its name says so.
protocol Contender: AnyObject, SendableMetatype {
  static var name: String { get }
  init()
  func add(_ counter: Counter)
  func remove(_ counter: Counter)
  /// Calls all delegates, several times. The loop is here, so that the compiler sees all of it.
  func invoke(times: Int) async
}

/// Somebody else who refers to a counter weakly.
final class Reference {
  private weak var counter: Counter?

  init(_ counter: Counter) { self.counter = counter }
}
