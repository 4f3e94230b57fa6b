import MulticastHeader

/// Selects delegates of a multicast.
enum Selection {
  case equal(multicast_delegate)
  case oneOf(UnsafePointer<multicast_delegate>, count: Int)
  case context(UnsafeMutableRawPointer?)
  case all

  @inline(never)
  func includes(_ registration: Registration) -> Bool {
    let other = registration.delegate
    return switch self {
    case .equal(let delegate): other == delegate
    case .oneOf(let delegates, let count): contains(delegates, count, other)
    case .context(let context): other.context == context
    case .all: true
    }
  }

  private func contains(
    _ delegates: UnsafePointer<multicast_delegate>, _ count: Int, _ other: multicast_delegate
  ) -> Bool {
    var index = 0
    while index != count {
      if delegates[index] == other { return true }
      index &+= 1
    }
    return false
  }
}

/// A set of running calls to delegates that have already been removed.
enum PriorCalls {
  /// The calls to selected delegates of a multicast. If `mayBeCalled` is false, no invocation can
  /// be in such a call, so only runs of queues are considered.
  case selected(Selection, of: Multicast, mayBeCalled: Bool)
  /// The calls to members of a lifetime.
  case members(Lifetime)
  /// The calls made by runs of a queue.
  case queued(Handle)

  /// Whether this set contains the call with the given frame target and token.
  func contains(_ target: Target, _ token: Token) -> Bool {
    switch self {
    case .members(let lifetime): return lifetime.isRetiredMember(token)
    case .queued(let queue): return target.isRun && Lifetime.isMember(token, ofQueue: queue)
    case .selected(let selection, let multicast, let mayBeCalled):
      if target == multicast.target {
        return mayBeCalled && multicast.hasRetired(selection, token: token)
      }
      return target.isRun && multicast.isRetired(token, selection)
    }
  }
}

extension Multicast {
  /// Whether a list that an invocation may be reading contains a selected delegate that has been
  /// removed but not yet reclaimed.
  @inline(never)
  func hasRetired(_ selection: Selection, token: Token? = nil) -> Bool {
    stripe.lock()
    defer { stripe.unlock() }
    var isFound = false
    let look = { (list: InvocationList) in
      for position in 0..<list.count where !isFound {
        let entry = list.entry(position)
        isFound =
          entry.id == entry.token.changed(to: .retired)
          && (token.map { $0 == entry.token } ?? true) && selection.includes(Registration(entry))
      }
    }
    // Always search retired lists, because their counts of live entries are out of date.
    if let list, list.header.owner == handle, list.dead > 0 { look(list) }
    for list in retired where list.header.owner == handle { look(list) }
    return isFound
  }

  /// Whether a token refers to a selected delegate with a queue that has been removed but may still
  /// be called. There may be no list left that contains this delegate, because a queue's run
  /// protects no list.
  fileprivate func isRetired(_ token: Token, _ selection: Selection) -> Bool {
    guard let registration = Registration(slotOf: token), registration.owner == handle.index
    else { return false }
    stripe.lock()
    defer { stripe.unlock() }
    guard registration.id == token.changed(to: .retired), let details = registration.details,
      details.pointee.multicast == handle
    else { return false }
    return selection.includes(registration)
  }
}
