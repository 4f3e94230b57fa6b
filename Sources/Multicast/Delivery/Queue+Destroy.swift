import Synchronization

extension Queue {
  /// Ends the handle, and removes all registrations that deliver here.
  static func destroy(_ handle: Handle) -> Status {
    guard let queue = Queue(slotOf: handle) else { return .invalidHandle }
    do throws(Status) {
      let recipients = try queue.withLock { () throws(Status) in queue.tearDown() }
      let status = Lifetime.end(recipients, as: .recipient)
      pool.reclaim(handle.index)
      return status
    } catch {
      return error
    }
  }

  /// - Returns: the lifetime of the registrations, which has not ended yet.
  private func tearDown() -> Handle {
    let recipients = state.recipients
    state.header.id.store(handle.changed(to: .vacant), ordering: .relaxed)
    state.recipients = .none
    _ = state.ring.takeAll()
    state.ring.deallocate()
    state.ring = CallRing()
    closeDescriptor()
    state.worker = .none
    wakeSleepers()
    return recipients
  }
}
