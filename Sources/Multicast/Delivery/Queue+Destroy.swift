import Synchronization

extension Queue {
  /// Ends the handle, and removes all registrations that deliver here.
  ///
  /// If another thread is destroying the queue, this fails; after waiting as well.
  static func destroy(_ handle: Handle, _ timeout: Timeout = .unlimited) -> Status {
    guard let queue = Queue(slotOf: handle) else { return .invalidHandle }
    guard let (recipients, hasWake) = queue.findRecipients() else { return .invalidHandle }
    var hasEnded = false
    var places: CallRing.Places? = nil
    let ended = Lifetime.end(
      recipients, as: .recipient, timeout
    ) { payloads throws(Status) in
      try queue.withLock { () throws(Status) in places = queue.tearDown(&payloads) }
      hasEnded = true
    }
    places?.deallocate()
    // The hazard of a wake function is the handle.
    let woken = hasWake ? PendingRemovals.wait(for: handle, timeout) : .ok  //~ no_wait_for_wake
    let status = ended.combined(with: woken)
    if hasEnded {
      queue.lock.lock()
      queue.state.endingRecipients = .none
      queue.lock.unlock()
      pool.reclaim(handle.index)
    }
    return status
  }

  /// The lifetime of the registrations, even if another thread is just destroying the queue; and
  /// whether the queue has a wake function.
  private func findRecipients() -> (recipients: Handle, hasWake: Bool)? {
    lock.lock()
    defer { lock.unlock() }
    let hasWake = state.wake != nil
    if isCurrent { return (state.recipients, hasWake) }
    let isEnding = state.header.id.load(ordering: .relaxed) == handle.changed(to: .vacant)
    guard isEnding && !state.endingRecipients.isNone else { return nil }
    return (state.endingRecipients, hasWake)
  }

  /// - Returns: the places of the ring, which has no calls.
  private func tearDown(_ released: inout ReleasedPayloads) -> CallRing.Places {
    state.header.id.store(handle.changed(to: .vacant), ordering: .relaxed)
    state.endingRecipients = state.recipients
    state.recipients = .none
    _ = state.ring.takeAll(&released)
    closeDescriptor()
    state.worker = .none
    wakeSleepers()
    return state.ring.end()
  }
}
