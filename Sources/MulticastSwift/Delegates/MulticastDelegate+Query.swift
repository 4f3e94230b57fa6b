import CMulticast

extension MulticastDelegate {
  /// The number of delegates, including paused delegates, without delegates that have ended.
  ///
  /// - Complexity: O(delegates).
  public var count: Int {
    withExtendedLifetime(self) {
      prune()
      return max(0, Int(target.count))
    }
  }

  /// Whether there are none.
  ///
  /// - Complexity: O(delegates).
  public var isEmpty: Bool { count == 0 }

  /// Whether the multicast has this delegate, paused or not; false for a value.
  ///
  /// - Complexity: O(delegates).
  public func contains(_ delegate: P) -> Bool {
    withEqual(to: delegate) { target.contains($0) } ?? false
  }

  /// All delegates in order, including paused delegates, without delegates that have ended.
  ///
  /// - Complexity: O(delegates).
  public var delegates: [P] {
    withExtendedLifetime(self) {
      var delegates: [P] = []
      _ = enumerateDelegates(target.id) { context, function in
        Words<P>.withDelegate(context, function) {
          delegates.append($0)
          return true
        }
      }
      return delegates
    }
  }
}
