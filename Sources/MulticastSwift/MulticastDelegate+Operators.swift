/// Calls the closure on the right with each delegate on the left.
infix operator |> : AdditionPrecedence

extension MulticastDelegate {
  /// Adds a delegate.
  public static func += (multicast: MulticastDelegate, delegate: P) { multicast.add(delegate) }

  /// Removes the first registration of a delegate.
  public static func -= (multicast: MulticastDelegate, delegate: P) { multicast.remove(delegate) }

  /// Calls `body` with each delegate, as ``invoke(_:)`` does.
  @inlinable
  @discardableResult
  public static func |> <E: Error>(
    multicast: MulticastDelegate, body: (P) throws(E) -> Void
  ) throws(E) -> Int {
    try multicast.invoke(body)
  }
}
