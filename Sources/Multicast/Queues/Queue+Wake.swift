import MulticastShims

/// The queue's wake function, which notifies the program's event loop when calls are waiting.
///
/// While the function runs, the hazard in the frame of the invocation or run is the queue's handle.
/// The hazard is set under the queue's lock. A thread that destroys the queue also takes that lock,
/// so it finds the hazard and waits. The function is never called after the queue has been
/// destroyed.
extension Queue {
  /// A call to the wake function, to be made after the lock has been released.
  struct WakeCall {
    fileprivate let function: Wake
    fileprivate let context: UnsafeMutableRawPointer?
  }

  /// Prepares a call to the wake function if calls are waiting. The function is called at most once
  /// between two runs of the queue, because some event loops do not merge wake-ups.
  ///
  /// The caller holds the lock.
  ///
  /// - Parameter frame: A frame of this thread whose hazard is not in use.
  func beginWake(_ frame: Frame) -> WakeCall? {
    let settings = state.settings  // copied here: the slot may be reused later
    guard state.needsWake && state.ring.count > 0, let function = settings.wake else { return nil }
    state.needsWake = false  //~ wake_notified_twice
    frame.setHazard(handle)  //~ no_hazard_of_wake
    return WakeCall(function: function, context: settings.wakeContext)
  }

  /// Notes that the event loop must be notified of the next call. The caller holds the lock.
  func renewWake() {
    if state.settings.wake == nil { return }
    state.needsWake = true
    state.fastPathEnd = 0
  }

  /// Like `renewWake`, but takes the lock itself. Called when a run cannot begin.
  func runWasCalled() {
    lock.lock()
    if isCurrent { renewWake() }
    lock.unlock()
  }

  /// Calls the wake function. No lock is held.
  func callWake(_ wake: WakeCall, _ frame: Frame) {
    Lock.checkNoneIsHeld()  //~ woken_under_lock
    wake.function(wake.context)
    lock.lock()
    frame.clearHazard()
    let isDestroyed = !isCurrent
    lock.unlock()
    // A thread that has destroyed the queue may have seen the hazard and gone to sleep, so wake it.
    if isDestroyed { Waits.wake(handle.rawValue) }  //~ no_wake_after_wake
  }
}

extension Queue {
  /// Sleeps until a call is waiting, and returns the number of waiting calls.
  static func wait(_ handle: Handle, _ timeout: Timeout) throws(Status) -> Int {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    return try queue.withLock { () throws(Status) in
      while queue.state.ring.count == 0 {
        if timeout.isOver { throw .timeout }
        queue.state.ring.close()
        queue.sleep(until: timeout.deadline)
        guard queue.isCurrent else { throw .invalidHandle }
      }
      return Int(queue.state.ring.count)
    }
  }
}

extension Queue {
  /// Returns the descriptor, which is opened when it is first requested, or -1 if the queue does
  /// not exist or the descriptor could not be opened.
  static func descriptor(_ handle: Handle) -> Int32 {
    guard let queue = Queue(slotOf: handle) else { return -1 }
    queue.lock.lock()
    defer { queue.lock.unlock() }
    guard queue.isCurrent else { return -1 }
    if queue.state.descriptor < 0 {
      // Close the head, so that the last call is taken out under the lock.
      queue.state.ring.close()
      queue.state.fastPathEnd = 0
      let descriptor = shims_event_open()
      if descriptor >= 0 && queue.state.ring.count > 0 { shims_event_set(descriptor) }
      queue.state.descriptor = descriptor
    }
    return queue.state.descriptor
  }

  /// Called under the lock after calls have been queued or taken out.
  ///
  /// - Parameter before: The previous number of waiting calls.
  func updateDescriptor(from before: UInt64) {
    guard state.descriptor >= 0 else { return }
    let now = state.ring.count
    if before == 0 && now > 0 { shims_event_set(state.descriptor) }
    if before > 0 && now == 0 {
      shims_event_clear(state.descriptor)
      state.fastPathEnd = 0
    }
  }

  /// Closes the descriptor, if any. The caller holds the lock.
  func closeDescriptor() {
    if state.descriptor >= 0 { shims_event_close(state.descriptor) }  //~ descriptor_not_closed
    state.descriptor = -1
  }
}
