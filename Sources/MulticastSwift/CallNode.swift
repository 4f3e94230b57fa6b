/// An ordered list of delegates. Delegates are pushed at the end, popped by object or index, and
/// called together.
///
/// A node contains an object at most once and holds it weakly. It can replace a property that holds
/// a single delegate, if the property's setter pushes the delegate:
///
/// ```swift
/// var delegate: (any MessageManagerDelegate)? {
///   get { nil }
///   set { if let newValue { callNode.push(newValue) } }
/// }
/// ```
public final class CallNode<Delegate> {
  private let delegates = MulticastDelegate<Delegate>()

  /// Creates an empty node.
  public init() {}

  /// The number of delegates.
  ///
  /// - Complexity: O(delegates).
  public var count: Int { delegates.count }

  /// Adds a delegate at the end. A delegate that the node already contains moves to the end.
  ///
  /// - Complexity: O(delegates).
  @discardableResult
  public func push(_ delegate: Delegate) -> Registration { delegates.add(delegate, isUnique: true) }

  /// Removes a delegate, and waits until no other thread is calling it.
  ///
  /// - Returns: False if the node does not contain the delegate.
  /// - Complexity: O(delegates).
  @discardableResult
  public func pop(_ delegate: Delegate) -> Bool { delegates.removeEvery(delegate) }

  /// Removes the delegate at a position, and waits until no other thread is calling it.
  ///
  /// - Parameter index: The position, starting at 0.
  /// - Returns: False if there is no such position.
  /// - Complexity: O(delegates).
  @discardableResult
  public func pop(at index: Int) -> Bool { delegates.remove(at: index) }

  /// Calls `body` with each delegate, in the order in which the delegates were pushed.
  ///
  /// - Returns: The number of delegates that were called.
  /// - Throws: The error that `body` throws. After an error, no further delegate is called.
  /// - Complexity: O(delegates), without locks or allocations.
  @discardableResult
  public func call<E: Error>(_ body: (Delegate) throws(E) -> Void) throws(E) -> Int {
    try delegates.invoke(body)
  }
}

extension CallNode: Sendable where Delegate: Sendable {}
