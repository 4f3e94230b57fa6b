import CMulticast

extension Multicast {
  // MARK: - Removing one

  /// Removes the first of those selected.
  func removeFirst(_ selection: Selection) -> Status {
    removeOne(orSettle: selection) { list in list.firstPosition { selection.includes($0) } }
  }

  /// Removes the delegate at a place in the order of invocation.
  func remove(at index: Int) -> Status {
    removeOne(orSettle: nil) { list in
      guard index >= 0 && index < Int(list.live) else { return nil }
      if list.dead == 0 { return UInt32(truncatingIfNeeded: index) }
      var ahead = index
      return list.firstPosition { _ in
        defer { ahead &-= 1 }
        return ahead == 0
      }
    }
  }

  /// - Parameter selection: What to wait for where there is nothing to remove: another thread may
  ///   be removing it, or destroying the multicast.
  @inline(__always)
  private func removeOne(
    orSettle selection: Selection?, _ find: (InvocationList) -> UInt32?
  ) -> Status {
    var cleanup = Cleanup()
    var status = Status.notFound
    do throws(Status) {
      try withLock { () throws(Status) in
        cleanup.isAlone = isAlone(cleanup.thread)
        guard let list, let position = find(list) else { return }
        unlink(position, of: list, &cleanup)
        tidy(&cleanup)
        checkInvariants()
        status = .ok
      }
    } catch {
      status = error
      cleanup.isAlone = false
    }
    if status == .ok {
      // An equal one that was removed or replaced before may still run, with the same context.
      return selection.map { finish(cleanup, settling: $0) } ?? cleanup.finish(self)
    }
    let settled = selection.map { settle($0, after: cleanup) }
    return settled == .system ? .system : status
  }

  /// Removes a registration by its token.
  static func remove(
    token: UInt64, patience: Departures.Patience
  ) -> Status {
    guard let registration = Registration(slotOf: token) else { return .invalidHandle }
    let stripe = Stripe(of: registration.owner)
    stripe.lock()
    guard registration.id == token else {
      let id = registration.id
      stripe.unlock()
      return waitForRemoved(token, foundAs: id, patience)
    }
    let multicast = Multicast(slot: registration.owner)
    var cleanup = Cleanup()
    if multicast.drop(registration, &cleanup) {
      stripe.unlock()
      return .ok
    }
    let list = multicast.list.unsafelyUnwrapped
    multicast.unlink(registration.storage.pointee.link, of: list, &cleanup)
    multicast.tidy(&cleanup)
    multicast.checkInvariants()
    stripe.unlock()
    return cleanup.finish(multicast, patience: patience)
  }

  /// A token that is stale may have been removed just now, by a thread that did not wait.
  private static func waitForRemoved(
    _ token: UInt64, foundAs id: UInt64, _ patience: Departures.Patience
  ) -> Status {
    // Never given out: nothing of it can run.
    if Handle.generation(of: token) > Handle.generation(of: id) { return .invalidHandle }
    if case .none = patience { return .invalidHandle }
    // As long as it is leaving, its remover may not have had its heavy fence yet.
    if id == Handle.change(token, to: Handle.Kind.leaving) {
      guard Ticket.fence() else { return .system }
    }
    let status = Departures.wait(for: token, patience: patience)
    return status == .timeout ? .timeout : .invalidHandle
  }

  /// Removes a delegate for the one thread that names it and may call it, or has found it dead. As
  /// it is named, the rest is left for when the name is taken away.
  ///
  /// - Returns: false where another call of it, or a remover, came first.
  func claim(_ token: UInt64) -> Bool {
    var cleanup = Cleanup()
    let stripe = self.stripe
    stripe.lock()
    let registration = Registration(index: Handle.index(of: token))
    guard isCurrent, registration.id == token, let list else {
      stripe.unlock()
      return false
    }
    unlink(registration.storage.pointee.link, of: list, &cleanup)
    tidy(&cleanup)
    checkInvariants()
    stripe.unlock()
    _ = cleanup.finish(self, patience: .none)
    return true
  }

  // MARK: - Removing several

  /// Removes all that are selected.
  ///
  /// - Returns: how many those were.
  func removeAll(_ selection: Selection) throws(Status) -> Int {
    try remove(settling: selection) { cleanup in unlinkAll(selection, &cleanup) }
  }

  /// Removes the first that equals each of some delegates.
  ///
  /// - Returns: how many were removed.
  func removeEach(
    _ delegates: UnsafePointer<multicast_delegate>?, count: Int
  ) throws(Status) -> Int {
    guard let delegates else { return try withLock { () throws(Status) in 0 } }
    return try remove(settling: .oneOf(delegates, count: count)) { cleanup in
      guard let list else { return 0 }
      var removed = 0
      var index = 0
      while index != count {
        let selection = Selection.equal(delegates[index])
        if let position = list.firstPosition(where: { selection.includes($0) }) {
          unlink(position, of: list, &cleanup)
          removed &+= 1
        }
        index &+= 1
      }
      return removed
    }
  }

  @inline(__always)
  private func remove(
    settling selection: Selection, _ unlink: (inout Cleanup) -> Int
  ) throws(Status) -> Int {
    var cleanup = Cleanup()
    var removed = 0
    var failure: Status? = nil
    do throws(Status) {
      try withLock { () throws(Status) in
        cleanup.isAlone = isAlone(cleanup.thread)
        removed = unlink(&cleanup)
        tidy(&cleanup)
        checkInvariants()
      }
    } catch {
      // Another thread may be destroying the multicast.
      failure = error
      cleanup.isAlone = false
    }
    if finish(cleanup, settling: selection) == .system { throw .system }
    if let failure { throw failure }
    return removed
  }

  /// Finishes a removal of many, then waits for calls of what others removed before.
  func finish(_ cleanup: Cleanup, settling selection: Selection) -> Status {
    let status = cleanup.finish(self)
    if status == .system { return status }
    let settled = settle(selection, after: cleanup)
    return settled == .ok ? status : settled
  }
}
