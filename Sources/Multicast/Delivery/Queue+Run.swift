import CMulticast
import MulticastShims
import Synchronization

extension Queue {
  /// Makes calls that wait, on this thread.
  ///
  /// - Parameter limit: The most calls to make; 0: as many as wait now.
  /// - Returns: how many were made.
  static func run(_ handle: Handle, limit: UInt) throws(Status) -> Int {
    guard let queue = Queue(slotOf: handle) else { throw .invalidHandle }
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      queue.runWasCalled()
      throw .outOfMemory
    }
    // Another thread may wait for this one to run the queue again.
    defer { if ThreadRegistry.leaveIfEnding(thread, hasEntered) { Waits.wake() } }
    queue.lock.lock()
    defer { queue.lock.unlock() }
    guard queue.isCurrent else { throw .invalidHandle }
    // Also if the run is refused: it may have used up a wake-up.
    queue.renewWake()
    guard queue.isRunnable(by: thread), queue.isFree(for: thread) else { throw .state }
    let waiting = UInt(queue.state.ring.count)
    return try queue.run(by: thread, limit: limit == 0 ? waiting : limit)
  }

  // MARK: - Under the lock

  /// Whether this thread may run the queue: the queue has no thread of its own, or this is it.
  private func isRunnable(by thread: ThreadRecord) -> Bool {
    switch worker {
    case .none: true
    case .running: state.workerRecord == thread.storage
    case .stopping: false
    }
  }

  /// Whether no other thread runs the queue. A thread that has ended inside a call does not any
  /// more.
  func isFree(for thread: ThreadRecord) -> Bool {
    guard let runner = state.runner else { return true }
    return thread.storage == runner || !ThreadRecord(runner).isInside(target)
  }

  /// Makes calls that wait, one after the other. The lock is released during each.
  ///
  /// The hazard of a call is set before the lock is released, and cleared after it is taken again.
  /// So a removal that takes calls back under the lock finds the hazard if a call has begun.
  ///
  /// - Parameter limit: The most calls to make. A call that is taken out, but not made because its
  ///   context is dead, does not count.
  func run(by thread: ThreadRecord, limit: UInt) throws(Status) -> Int {
    // Nil unless this is a run inside a run. The runner may be out of date: that thread has ended
    // inside a run, and this thread has its record.
    let isRunning = state.runner == thread.storage && thread.isInside(target)
    let outer = isRunning ? thread.storage : nil
    guard let frame = thread.push() else { throw .limit }
    frame.publish(target, epoch: .latest)
    state.runner = thread.storage

    var made: UInt = 0
    withUnsafeTemporaryAllocation(
      byteCount: MemoryLayout<WaitingCall>.stride, alignment: 16
    ) { bytes in
      let call = bytes.baseAddress.unsafelyUnwrapped.assumingMemoryBound(to: WaitingCall.self)
      // Between calls the queue may be destroyed, and its own thread may be started or stopped.
      while made < limit && isCurrent && isRunnable(by: thread) && take(call, frame) {
        // From here on this thread is expected to make room.
        state.consumer.store(thread.identity, ordering: .relaxed)
        if runFirst(call, frame) { made &+= 1 }
      }
    }

    if isCurrent {
      state.runner = outer
      if outer == nil { runDidEnd(frame) }
    }
    thread.pop(frame)
    return Int(made)
  }

  /// If there is a worker, it may wait for its turn. It is expected to make room now. If calls are
  /// left, the program's loop is told so.
  private func runDidEnd(_ frame: Frame) {
    let workerThread = state.workerThread.load(ordering: .relaxed)
    if !workerThread.isNone && worker == .running {
      state.consumer.store(workerThread, ordering: .relaxed)
    }
    if state.sleeperCount > 0 { wakeSleepers() }
    guard let wake = beginWake(frame) else { return }  //~ no_wake_after_run
    lock.unlock()
    finish(wake, frame)
    lock.lock()
  }

  /// Takes out the oldest call, and sets its hazard.
  private func take(_ call: UnsafeMutablePointer<WaitingCall>, _ frame: Frame) -> Bool {
    let before = state.ring.count
    guard let first = state.ring.takeFirst() else { return false }
    shims_copy(call, first, MemoryLayout<WaitingCall>.size)
    state.statistics.delivered &+= 1
    updateDescriptor(from: before)
    checkInvariants()
    call.pointee.sharedPayload?.pass(to: frame)
    frame.setHazard(call.pointee.token)
    return true
  }

  /// Makes a call that was taken out. The lock is released meanwhile, and then the hazard cleared.
  private func runFirst(_ call: UnsafeMutablePointer<WaitingCall>, _ frame: Frame) -> Bool {
    let hasBlocked = state.blockedCount > 0
    lock.unlock()
    if hasBlocked { Waits.wake() }  //~ blocked_not_woken

    let (token, details) = (call.pointee.token, call.pointee.details)
    let invocation = WaitingCall.invocation(of: call)
    let registration = Registration(index: token.index)
    let function = details.pointee.function.unsafelyUnwrapped
    let isOnce = details.pointee.flags & MULTICAST_ONCE != 0
    var isMade = true
    if isOnce || details.pointee.lock != nil {
      isMade = registration.callProtected(
        token, context: details.pointee.context, isOnce: isOnce
      ) {
        _ = invocation(function, $0)
      }
    } else {
      _ = invocation(function, details.pointee.context)  //~ called_under_lock
    }
    var released = ReleasedPayloads()
    lock.lock()
    // Under the lock: a fork in between would leave a reference that no frame has.
    released.release(Payload.take(from: frame), isMade: isMade)
    frame.clearHazard()  //~ hazard_not_cleared
    if !released.isEmpty {
      lock.unlock()
      released.finish()
      lock.lock()
    }
    if !isMade && isCurrent {
      state.statistics.delivered &-= 1
      state.statistics.retracted &+= 1
    }
    // A removal that took this lock before has seen the hazard. This thread sees its mark now.
    if registration.id != token {
      lock.unlock()
      PendingRemovals.callDidReturn(token)  //~ no_look_after_queued_call
      lock.lock()
    }
    return isMade
  }
}
