extension MulticastDelegate {
  /// Adds a delegate.
  ///
  /// - Complexity: As ``add(_:priority:isUnique:once:lifetime:label:)``.
  public static func += (multicast: MulticastDelegate, delegate: P) { multicast.add(delegate) }

  /// Removes the first registration of a delegate.
  ///
  /// - Complexity: As ``remove(_:)``.
  public static func -= (multicast: MulticastDelegate, delegate: P) { multicast.remove(delegate) }
}
