import MulticastHeader
import Synchronization

extension Queue {
  /// Ends the handle, and removes all registrations that deliver to the queue.
  ///
  /// If another thread is already destroying the queue, this function also waits for the queue's
  /// calls, and then fails.
  static func destroy(_ handle: Handle, _ timeout: Timeout = .untilExit) -> Status {
    guard let queue = Queue(slotOf: handle) else { return .invalidHandle }
    guard let (recipients, hasWake) = queue.findRecipients() else { return .invalidHandle }
    var hasEnded = false
    var places: CallRing.Places? = nil
    var reserve: PayloadReserve? = nil
    let ended = Lifetime.end(
      recipients, as: .recipient, timeout
    ) { payloads throws(Status) in
      try queue.withLock { () throws(Status) in
        places = queue.tearDown(&payloads)
        reserve = queue.state.reserve.exchange(nil, ordering: .relaxed).map { PayloadReserve($0) }
      }
      hasEnded = true
    }
    places?.deallocate()
    reserve?.end()  //~ reserve_not_ended
    // A thread that is in the wake function has the queue's handle as its hazard.
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

  /// Waits until no call from the queue and no call to its wake function is running. The queue must
  /// have been destroyed.
  static func waitForEnd(of handle: Handle, _ timeout: Timeout) -> Status {
    guard let queue = Queue(slotOf: handle) else { return .invalidHandle }
    queue.lock.lock()
    let end = handle.end(foundAs: queue.state.header.id.load(ordering: .relaxed))
    queue.lock.unlock()
    if end != .ok { return end }
    // The hazards of the queue's runs are visible, because each of them was set either under the
    // lock or before the ring's head was closed.
    let called = Removal().waitForPriorRemovals(.queued(handle), timeout)
    return called.combined(with: PendingRemovals.wait(for: handle, timeout))
  }

  /// The lifetime of the queue's registrations, and whether the queue has a wake function. Nil if
  /// the queue does not exist and no thread is still destroying it.
  private func findRecipients() -> (recipients: Handle, hasWake: Bool)? {
    lock.lock()
    defer { lock.unlock() }
    let hasWake = state.settings.wake != nil
    if isCurrent { return (state.recipients, hasWake) }
    let isEnding = state.header.id.load(ordering: .relaxed) == handle.changed(to: .vacant)
    guard isEnding && !state.endingRecipients.isNone else { return nil }
    return (state.endingRecipients, hasWake)
  }

  /// Returns the ring's places. The caller holds the lock.
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
