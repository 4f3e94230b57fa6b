import MulticastHeader

extension MulticastDelegate {
  /// The number of delegates, including paused delegates, without delegates that have ended.
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

  /// Whether there may be delegates, perhaps only delegates that have ended. Looks at none of them.
  var mayHaveDelegates: Bool {
    withExtendedLifetime(self) { multicast_is_wanted(multicast_interest(target)) }
  }

  /// Whether the multicast has this delegate, paused or not; false for a value.
  ///
  /// - Complexity: O(delegates).
  public func contains(_ delegate: P) -> Bool {
    extendingLifetimes(with: delegate) {
      guard let equal = equal(to: delegate) else { return false }
      return multicast_contains(target, equal)
    }
  }

  /// All delegates in order, including paused delegates, without delegates that have ended.
  ///
  /// - Complexity: O(delegates).
  public var delegates: [P] {
    var delegates: [P] = []
    func append(_ delegate: UnsafePointer<multicast_delegate>) -> Bool {
      Words<P>.withDelegate(delegate) {
        delegates.append($0)
        return true
      }
    }
    return withExtendedLifetime(self) {
      _ = Visitor.with(append) { multicast_enumerate(target, enumerateDelegates, $0) }
      return delegates
    }
  }
}

/// The context is a ``Visitor``. It gets delegates as ``visitDelegate`` does.
private let enumerateDelegates: multicast_enumerator = { context, registration in
  var delegate = registration!.pointee.delegate
  if let strong = registration!.pointee.strong { delegate.context = strong }
  return Visitor.call(context!, &delegate)
}
