import MulticastShims

extension Queue {
  /// The descriptor that is readable while calls wait.
  ///
  /// - Returns: -1 if there is none.
  static func descriptor(_ handle: Handle) -> Int32 {
    guard let queue = Queue(slotOf: handle) else { return -1 }
    queue.lock.lock()
    defer { queue.lock.unlock() }
    guard queue.isCurrent else { return -1 }
    if queue.state.descriptor < 0 {
      // From here on the last call is taken out under the lock.
      queue.state.ring.close()
      queue.state.quietEnd = 0
      let descriptor = shims_event_open()
      if descriptor >= 0 && queue.state.ring.count > 0 { shims_event_set(descriptor) }
      queue.state.descriptor = descriptor
    }
    return queue.state.descriptor
  }

  /// Called under the lock after calls were queued or taken out.
  ///
  /// - Parameter before: How many waited before.
  func updateDescriptor(from before: UInt64) {
    guard state.descriptor >= 0 else { return }
    let now = state.ring.count
    if before == 0 && now > 0 { shims_event_set(state.descriptor) }
    if before > 0 && now == 0 {
      shims_event_clear(state.descriptor)
      state.quietEnd = 0
    }
  }

  /// The lock is held.
  func closeDescriptor() {
    if state.descriptor >= 0 { shims_event_close(state.descriptor) }  //~ descriptor_not_closed
    state.descriptor = -1
  }
}
