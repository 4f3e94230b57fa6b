import CMulticast

extension MulticastDelegate {
  /// Watches the calls of this multicast; nil: no more.
  ///
  /// - Returns: ``Removal/ended``, or ``Removal/pending``: a function of the last watch still runs.
  /// - Complexity: O(1).
  @discardableResult
  public func setWatch(_ watch: Watch?) -> Removal {
    withExtendedLifetime(self) {
      extras.storeIfNil(Extras()).watch.replace(with: watch, of: target)
    }
  }
}

extension MulticastDelegate: CustomDebugStringConvertible {
  /// The delegates with their labels, and which thread is in which call.
  ///
  /// - Complexity: O(delegates).
  public var debugDescription: String { withExtendedLifetime(self) { Text.describing(target) } }
}
