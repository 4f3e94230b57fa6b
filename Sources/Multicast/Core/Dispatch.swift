import MulticastHeader
import Synchronization

/// One invocation with options: it may own its payload, wait for the calls that it queues, and
/// report what became of them.
struct Dispatch: Call {
  /// What became of the calls so far.
  struct Progress {
    var queued: UInt64 = 0
    var refused: UInt64 = 0
    /// Whether `copy` has failed. It is not called again.
    var hasNoCopy = false
  }

  static var isQueued: Bool { true }

  let options: InvocationOptions
  let progress: UnsafeMutablePointer<Progress>

  @inline(__always) func wants(_ events: UInt64) -> Bool { options.invocation.isWanted(events) }

  @inline(__always) func callAsFunction(
    _ function: multicast_function, _ context: UnsafeMutableRawPointer?
  ) -> Bool {
    options.invocation(function, context)
  }

  func append(_ token: Token, to queue: Queue, _ frame: Frame) -> Bool {
    var outcome = Queue.Outcome.refused
    if needsPayload && !preparePayload(for: queue, frame) {
      outcome = queue.refuse(token)
    } else {
      outcome = queue.append(
        token, options.invocation, sharing: Payload(retainedBy: frame), frame)
    }
    switch outcome {
    case .queued: progress.pointee.queued &+= 1
    case .refused: progress.pointee.refused &+= 1
    case .leftOut: break
    }
    return outcome == .queued
  }

  /// The frame's payload is released, or waited for, after the invocation.
  func finish(_ frame: Frame) {}

  // MARK: - The payload of queued calls

  /// Whether queued calls share the payload. Otherwise it is small, and each call has a copy.
  private var needsPayload: Bool {
    options.isWaiting || options.copy != nil || options.release != nil
      || !WaitingCall.holds(options.invocation.size)
  }

  /// Makes the frame retain what the next call for this queue shares. An owned payload is in the
  /// frame from the beginning.
  ///
  /// - Returns: false if out of memory.
  private func preparePayload(for queue: Queue, _ frame: Frame) -> Bool {
    if Payload(retainedBy: frame) == nil {
      guard let payload = makePayload() else { return false }
      payload.pass(to: frame)
    }
    guard options.isWaiting else { return true }
    let newest = Payload(retainedBy: frame).unsafelyUnwrapped
    if newest.isReceipt && Receipt(newest).queue.handle == queue.handle { return true }
    // The receipt takes over the frame's reference.
    guard let receipt = Receipt(after: newest, for: queue) else { return false }
    receipt.payload.pass(to: frame)  //~ previous_not_retained
    return true
  }

  /// - Returns: nil if out of memory.
  private func makePayload() -> Payload? {
    if progress.pointee.hasNoCopy { return nil }
    return Self.makePayload(options, &progress.pointee.hasNoCopy)
  }

  /// - Returns: nil if out of memory.
  @inline(never)
  static func makePayload(_ options: InvocationOptions, _ hasNoCopy: inout Bool) -> Payload? {
    let (payload, size) = (options.invocation.payload, options.invocation.size)
    guard let copy = options.copy else {
      // Without size the calls get the caller's pointer itself.
      guard size != 0, let payload else { return Payload(owning: payload, size: 0, nil) }
      return Payload(copying: payload, size: size)
    }
    // First what can fail without a trace.
    guard let block = Payload.allocate(Payload.headerSize) else { return nil }
    Lock.checkNoneIsHeld()
    guard let copied = copy(payload, size) else {
      hasNoCopy = true  //~ copied_again
      Payload.deallocate(block, size: Payload.headerSize)
      return nil
    }
    return Payload(block, .owned, copied, size, options.release)
  }
}

extension Dispatch {
  /// What an invocation with options reports, beside the calls on its own thread.
  struct Outcome {
    var called: UInt64 = 0
    var queued: UInt64 = 0
    var refused: UInt64 = 0
    /// Of the queued calls, if the invocation waits for them.
    var made: UInt64 = 0
    var unfinished: UInt64 = 0
  }

  /// Invokes a multicast with options.
  ///
  /// - Parameters:
  ///   - target: What `find` looks for, if the caller knows its handle.
  ///   - find: Finds a multicast without policies, or returns nil if there is nothing to invoke.
  /// - Returns: how many delegates were called or queued, or the number of a status.
  @inline(__always)
  static func invoke(
    _ options: InvocationOptions, _ outcome: inout Outcome, _ target: Handle,
    _ find: () throws(Status) -> Multicast?
  ) -> Int64 {
    var owned: Payload? = nil
    if options.isOwned {
      let invocation = options.invocation
      owned = Payload(owning: invocation.payload, size: invocation.size, options.release)
      if owned == nil {
        // Its release function runs in any case.
        Payload.release(invocation.payload, invocation.size, options.release)
        return Status.outOfMemory.count
      }
    }
    do throws(Status) {
      if options.isContradictory { throw .invalidArgument }
      guard let multicast = try find() else {
        owned?.release()
        return 0
      }
      return multicast.dispatch(options, &owned, &outcome)
    } catch {
      if error == .invalidHandle && target.kind == .governed,
        let governed = Multicast(slotOf: target)
      {
        return governed.invokeGoverned(options, &owned, &outcome)
      }
      owned?.release()  //~ payload_of_failure_lost
      return error.count
    }
  }
}

extension Multicast {
  /// - Parameter owned: What the frame of the invocation is to retain. If there is none because the
  ///   invocation has failed, it is released.
  func dispatch(
    _ options: InvocationOptions, _ owned: inout Payload?, _ outcome: inout Dispatch.Outcome
  ) -> Int64 {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      owned?.release()
      return Status.outOfMemory.count
    }
    defer { if ThreadRegistry.leaveIfEnding(thread, hasEntered) && Queue.isInUse { Waits.wake() } }
    var progress = Dispatch.Progress()
    // The time of the calls on this thread counts.
    let deadline = options.deadline
    var shared: Payload? = owned
    let count = withUnsafeMutablePointer(to: &progress) { progress in
      let dispatch = Dispatch(options: options, progress: progress)
      return withList(on: thread) { list, frame, asymmetric in
        // If the thread ends inside a call, the payload is released with the frame.
        shared?.pass(to: frame)
        let called =
          asymmetric ? list.invoke(dispatch, in: frame) : list.invokeFenced(dispatch, in: frame)
        shared = Payload.take(from: frame)
        return called
      }
    }
    guard count >= 0 else {
      shared?.release()
      return count
    }
    outcome.called = UInt64(count) &- progress.queued
    outcome.queued = progress.queued
    outcome.refused = progress.refused
    var status = Status.ok
    //~ no_wait_for_queued_calls
    if options.isWaiting, let shared { status = Receipt.wait(for: shared, deadline, &outcome) }
    shared?.release()  //~ receipt_released_twice
    return status == .timeout ? status.count : count
  }
}

extension Receipt {
  /// Waits for the calls of an invocation. A call that only this thread can make, or one that waits
  /// for this thread, is not waited for. Outside all locks and frames.
  ///
  /// - Parameter newest: The newest receipt, or the payload if no call was queued.
  /// - Returns: `ok` or `timeout`.
  fileprivate static func wait(
    for newest: Payload, _ timeout: Timeout, _ outcome: inout Dispatch.Outcome
  ) -> Status {
    var status = Status.ok
    var next = newest
    while next.isReceipt && status != .timeout {
      let receipt = Receipt(next)
      status = Waits.sleep(for: receipt.wait, timeout) { receipt.isOver }
      next = receipt.previous
    }
    next = newest
    while next.isReceipt {
      let (made, left) = Receipt(next).calls
      outcome.made &+= UInt64(made)  //~ made_not_counted
      outcome.unfinished &+= UInt64(left)  //~ unfinished_not_counted
      next = Receipt(next).previous
    }
    return status == .timeout ? .timeout : .ok
  }
}
