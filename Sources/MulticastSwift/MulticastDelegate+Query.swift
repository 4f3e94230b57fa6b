import MulticastHeader

extension MulticastDelegate {
  /// How many delegates there are, paused ones included, those that have ended not.
  ///
  /// - Complexity: O(delegates).
  public var count: Int {
    withExtendedLifetime(self) {
      prune()
      return max(0, Int(multicast_count(target)))
    }
  }

  /// Whether there are none.
  ///
  /// - Complexity: O(delegates).
  public var isEmpty: Bool { count == 0 }

  /// Whether there are some, perhaps only such that have ended. Looks at none of them.
  var mayHaveDelegates: Bool { withExtendedLifetime(self) { multicast_count(target) > 0 } }

  /// Whether this delegate is there, paused or not; false for a value.
  ///
  /// - Complexity: O(delegates).
  public func contains(_ delegate: P) -> Bool {
    withExtendedLifetime((self, delegate)) {
      guard let equal = equal(to: delegate) else { return false }
      return multicast_contains(target, equal)
    }
  }

  /// The delegates that an invocation would call now, in order: all that are not paused.
  ///
  /// - Complexity: O(delegates).
  public var delegates: [P] {
    var delegates: [P] = []
    visit {
      delegates.append($0)
      return true
    }
    return delegates
  }
}
