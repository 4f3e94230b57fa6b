/// Contenders call objects that conform to this protocol.
protocol Listener: AnyObject, Sendable {
  func hear(_ number: Int)
}

/// `@unchecked` is safe because only one task uses a counter.
final class Counter: Listener, @unchecked Sendable {
  private(set) var count = 0

  func hear(_ number: Int) { count &+= number }
}

/// A way to call many delegates. It does not keep the delegates alive, unless its name contains
/// "strong".
protocol Contender: AnyObject, SendableMetatype {
  static var name: String { get }
  init()
  func add(_ counter: Counter)
  func remove(_ counter: Counter)
  /// Calls all delegates several times. The loop is part of the contender, so that the compiler can
  /// optimize it together with the calls.
  func invoke(times: Int) async
}

/// An additional weak reference to a counter, outside the contenders.
final class Reference {
  private weak var counter: Counter?

  init(_ counter: Counter) { self.counter = counter }
}
