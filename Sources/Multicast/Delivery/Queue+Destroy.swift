import Synchronization

extension Queue {
  /// Ends the handle, and removes all registrations that deliver here.
  ///
  /// If another thread is destroying the queue, this fails; after waiting as well.
  static func destroy(_ handle: Handle, _ timeout: Timeout = .unlimited) -> Status {
    guard let queue = Queue(slotOf: handle) else { return .invalidHandle }
    guard let recipients = queue.findRecipients() else { return .invalidHandle }
    var hasEnded = false
    let status = Lifetime.end(recipients, as: .recipient, timeout) { () throws(Status) in
      try queue.withLock { () throws(Status) in queue.tearDown() }
      hasEnded = true
    }
    if hasEnded {
      queue.lock.lock()
      queue.state.endingRecipients = .none
      queue.lock.unlock()
      pool.reclaim(handle.index)
    }
    return status
  }

  /// The lifetime of the registrations, even if another thread is just destroying the queue.
  private func findRecipients() -> Handle? {
    lock.lock()
    defer { lock.unlock() }
    if isCurrent { return state.recipients }
    let isEnding = state.header.id.load(ordering: .relaxed) == handle.changed(to: .vacant)
    return isEnding && !state.endingRecipients.isNone ? state.endingRecipients : nil
  }

  private func tearDown() {
    state.header.id.store(handle.changed(to: .vacant), ordering: .relaxed)
    state.endingRecipients = state.recipients
    state.recipients = .none
    _ = state.ring.takeAll()
    state.ring.deallocate()
    state.ring = CallRing()
    closeDescriptor()
    state.worker = .none
    wakeSleepers()
  }
}
