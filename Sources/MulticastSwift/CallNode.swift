/// Delegates by position: pushed at the end, popped by object or by index, called all together.
///
/// A node has an object once at most, and does not keep it alive. The setter of a property that
/// used to hold a single delegate can push instead:
///
/// ```swift
/// var delegate: (any MessageManagerDelegate)? {
///   get { nil }
///   set { if let newValue { callNode.push(newValue) } }
/// }
/// ```
public final class CallNode<Delegate> {
  private let delegates = MulticastDelegate<Delegate>()

  /// An empty node.
  public init() {}

  /// How many delegates there are.
  ///
  /// - Complexity: O(delegates).
  public var count: Int { delegates.count }

  /// Adds a delegate at the end. A delegate that the node has already moves to the end.
  ///
  /// - Complexity: O(delegates).
  @discardableResult
  public func push(_ delegate: Delegate) -> Registration { delegates.add(delegate, isUnique: true) }

  /// Removes a delegate, and waits until no other thread is in a call of it.
  ///
  /// - Returns: False if the node does not have the delegate.
  /// - Complexity: O(delegates).
  @discardableResult
  public func pop(_ delegate: Delegate) -> Bool { delegates.removeEvery(delegate) }

  /// Removes the delegate at a position, and waits until no other thread is in a call of it.
  ///
  /// - Parameter index: 0 is the first.
  /// - Returns: False if there are not that many.
  /// - Complexity: O(delegates).
  @discardableResult
  public func pop(at index: Int) -> Bool { delegates.remove(at: index) }

  /// Calls `body` with each delegate, in the order in which they were pushed.
  ///
  /// - Returns: How many were called.
  /// - Throws: The error of `body`. Then no further delegate is called.
  /// - Complexity: O(delegates). No lock, and no allocation.
  @discardableResult
  public func call<E: Error>(_ body: (Delegate) throws(E) -> Void) throws(E) -> Int {
    try delegates.invoke(body)
  }
}

extension CallNode: Sendable where Delegate: Sendable {}
