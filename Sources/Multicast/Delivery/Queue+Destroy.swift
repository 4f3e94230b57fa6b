import Synchronization

extension Queue {
  /// Ends the handle, and removes all registrations that deliver here.
  static func destroy(_ handle: Handle) -> Status {
    guard let queue = Queue(slotOf: handle) else { return .invalidHandle }
    var hasEnded = false
    do throws(Status) {
      let recipients = try queue.withLock { () throws(Status) in queue.state.recipients }
      let status = Lifetime.end(recipients, as: .recipient) { () throws(Status) in
        try queue.withLock { () throws(Status) in queue.tearDown() }
        hasEnded = true
      }
      if hasEnded { pool.reclaim(handle.index) }
      return status
    } catch {
      return error
    }
  }

  private func tearDown() {
    state.header.id.store(handle.changed(to: .vacant), ordering: .relaxed)
    state.recipients = .none
    _ = state.ring.takeAll()
    state.ring.deallocate()
    state.ring = CallRing()
    closeDescriptor()
    state.worker = .none
    wakeSleepers()
  }
}
