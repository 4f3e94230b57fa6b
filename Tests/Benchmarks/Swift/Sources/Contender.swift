/// The protocol of the objects that contenders call.
protocol Listener: AnyObject, Sendable {
  func hear(_ number: Int)
}

/// `@unchecked`: only one task uses it.
final class Counter: Listener, @unchecked Sendable {
  private(set) var count = 0

  func hear(_ number: Int) { count &+= number }
}

/// A way to call many delegates. Unless its name says "strong", it does not keep them alive.
protocol Contender: AnyObject, SendableMetatype {
  static var name: String { get }
  init()
  func add(_ counter: Counter)
  func remove(_ counter: Counter)
  /// Calls all delegates, several times. The loop is part of the contender, so that the compiler
  /// sees all of it.
  func invoke(times: Int) async
}

/// Another weak reference to a counter.
final class Reference {
  private weak var counter: Counter?

  init(_ counter: Counter) { self.counter = counter }
}
