import MulticastHeader

extension Multicast {
  // MARK: - Removing one

  @_optimize(speed)
  func removeFirst(_ delegate: multicast_delegate) -> Status {
    let stripe = self.stripe
    stripe.lockInline()
    guard isCurrent, let registration = list?.first(delegate) else {
      stripe.unlock()
      return removeNone(waitingFor: .equal(delegate))
    }
    // A queue may still be running calls to equal delegates that were removed earlier.
    if !Queue.isInUse, let cleanup = Removal.removeAtOnce(registration, from: self) {
      stripe.unlockInline()
      cleanup.run()
      return .ok
    }
    var removal = Removal(from: self)
    removal.unlink(registration, unlocking: stripe)
    return removal.complete(waitingFor: .equal(delegate)).status
  }

  /// Called if no delegate matches. Waits for calls to matching delegates that were removed
  /// earlier.
  private func removeNone(waitingFor selection: Selection) -> Status {
    var removal = Removal(from: self)
    removal.withStripeLock { (_) throws(Status) in throw .notFound }
    return removal.complete(waitingFor: selection).status
  }

  /// Removes every selected delegate. Fails if no delegate is selected.
  @_optimize(speed)
  func removeEvery(_ selection: Selection, _ timeout: Timeout = .untilExit) -> Status {
    var removal = Removal(from: self)
    removal.withStripeLock { (removal) throws(Status) in
      if removal.unlinkAll(selection) == 0 { throw .notFound }
    }
    return removal.complete(timeout, waitingFor: selection).status
  }

  /// Removes the delegate at a given position in the order of invocation.
  func remove(at index: Int) -> Status {
    var removal = Removal(from: self)
    removal.withStripeLock { (removal) throws(Status) in
      guard let list, index >= 0 && index < Int(list.live) else { throw .notFound }
      var position = list.dead == 0 ? UInt32(truncatingIfNeeded: index) : 0
      var ahead = list.dead == 0 ? 0 : index
      while ahead > 0 || !list.entry(position).isLive {
        if list.entry(position).isLive { ahead &-= 1 }
        position &+= 1
      }
      removal.unlink(Registration(list.entry(position)), from: list, in: self)
    }
    return removal.complete().status
  }

  @_optimize(speed)
  static func remove(_ token: Token, _ timeout: Timeout) -> Status {
    guard let registration = Registration(slotOf: token) else { return .invalidHandle }
    let (stripe, id) = registration.lockStripe()
    guard id.isLive(as: token) else {
      stripe.unlock()
      return waitForRemoved(token, foundAs: id, timeout)
    }
    let multicast = Multicast(slot: registration.owner)
    if let cleanup = Removal.removeAtOnce(registration, from: multicast) {
      stripe.unlockInline()
      cleanup.run()
      return .ok
    }
    var removal = Removal(from: multicast)
    removal.unlink(registration, unlocking: stripe)
    return removal.complete(timeout).status
  }

  /// Waits for calls to a registration whose token is stale, because the thread that removed it may
  /// not have waited for them.
  private static func waitForRemoved(
    _ token: Token, foundAs id: Handle, _ timeout: Timeout
  ) -> Status {
    // No token of this generation has been handed out yet, so no call to its delegate can be
    // running.
    if token.generation > id.generation { return .invalidHandle }
    let status = waitForCalls(ofRemoved: token, foundAs: id, timeout)
    return status == .ok ? .invalidHandle : status
  }

  private static func waitForCalls(
    ofRemoved token: Token, foundAs id: Handle, _ timeout: Timeout
  ) -> Status {
    // If the registration has been reclaimed, no call to its delegate is running.
    if id != token.changed(to: .retired) { return .ok }
    return PendingRemovals.waitLate {
      // The thread that removed the registration may not have executed its heavy fence yet.
      guard Fence.heavy() else { return .system }
      return PendingRemovals.wait(for: token, timeout)
    }
  }

  /// Waits until no call to a removed registration's delegate is running.
  static func waitForEnd(of token: Token, _ timeout: Timeout) -> Status {
    guard let registration = Registration(slotOf: token) else { return .invalidHandle }
    let id = registration.id
    let end = token.end(foundAs: id.isLive(as: token) ? token : id)
    return end == .ok ? waitForCalls(ofRemoved: token, foundAs: id, timeout) : end
  }

  /// Removes a delegate for a thread that is about to call it or has found its context dead. The
  /// thread's hazard protects the registration, so the removal completes when the hazard is
  /// cleared.
  ///
  /// - Returns: false if another thread has already claimed or removed the delegate.
  static func claim(_ token: Token) -> Bool {
    let registration = Registration(index: token.index)
    let (stripe, id) = registration.lockStripe()
    guard id.isLive(as: token) else {  //~ claimed_without_check
      stripe.unlock()
      return false
    }
    var removal = Removal(from: Multicast(slot: registration.owner))
    removal.unlink(registration, unlocking: stripe)
    _ = removal.complete(.none)
    return true
  }

  // MARK: - Removing several

  func removeAll(
    _ selection: Selection, _ timeout: Timeout = .untilExit
  ) -> Removal.Result {
    var removal = Removal(from: self)
    removal.withStripeLock { (removal) throws(Status) in _ = removal.unlinkAll(selection) }
    return removal.complete(timeout, waitingFor: selection)
  }

  /// For each given delegate, removes the first registration of an equal delegate.
  @_optimize(speed)
  func removeEach(
    _ delegates: UnsafePointer<multicast_delegate>?, count: Int,
    _ timeout: Timeout = .untilExit
  ) -> Removal.Result {
    guard let delegates else {
      var outcome = Removal.Result()
      if !isCurrent { outcome.failure = .invalidHandle }
      return outcome
    }
    var removal = Removal(from: self)
    removal.withStripeLock { (removal) throws(Status) in
      guard let list else { return }
      var index = 0
      while index != count {
        if let found = list.first(delegates[index]) {
          removal.unlink(found, from: list, in: self)
        }
        index &+= 1
      }
    }
    return removal.complete(timeout, waitingFor: .oneOf(delegates, count: count))
  }
}

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
  /// Whether a selected delegate has been removed but not yet reclaimed, and is still in a list
  /// that an invocation may be reading.
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

  /// Whether a token refers to a selected delegate that has a queue and has been removed, but may
  /// still be in a call. The delegate may no longer be in any list, because a queue's run protects
  /// no list.
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
