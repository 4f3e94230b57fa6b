import MulticastHeader
import Synchronization

/// One invocation with options: it may own its payload, wait for the calls that it queues, and
/// report what became of them.
struct Dispatch {
  let options: InvocationOptions
  /// That of the invocation, if it is kept for replays; otherwise the highest one.
  let number: UInt

  // The outcome of the calls so far.

  private(set) var queued: UInt64 = 0
  private(set) var refused: UInt64 = 0
  /// Whether `copy` has failed. It is not called again.
  private var hasNoCopy = false

  init(_ options: InvocationOptions, number: UInt = .max) {
    self.options = options
    self.number = number
  }

  /// Queues a call.
  mutating func enqueue(_ token: Token, to queue: Queue, _ frame: Frame) -> Queue.EnqueueResult {
    var outcome = Queue.EnqueueResult.refused
    if needsPayload && !preparePayload(for: queue, frame) {
      outcome = queue.refuse(token)
    } else {
      outcome = queue.enqueue(
        token, options.invocation, sharing: Payload(retainedBy: frame), frame)
    }
    switch outcome {
    case .queued: queued &+= 1
    case .refused: refused &+= 1
    case .leftOut: break
    }
    return outcome
  }

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
  private mutating func preparePayload(for queue: Queue, _ frame: Frame) -> Bool {
    if Payload(retainedBy: frame) == nil {
      guard let payload = makePayload(for: queue) else { return false }
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
  private mutating func makePayload(for queue: Queue) -> Payload? {
    let invocation = options.invocation
    if options.copy == nil, invocation.size != 0, let bytes = invocation.payload {
      return queue.copy(bytes, size: invocation.size)
    }
    return hasNoCopy ? nil : Self.makePayload(options, &hasNoCopy)
  }

  /// - Returns: nil if out of memory.
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
  /// The report of an invocation with options.
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
  ///   - find: Finds a multicast, or returns nil if there is nothing to invoke.
  ///   - publish: Called afterwards, with the result and what keeps the payload. Returns the
  ///     result.
  /// - Returns: how many delegates were called or queued, or the number of a status.
  @inline(__always)
  static func invoke(
    _ options: InvocationOptions, _ outcome: inout Outcome,
    _ find: () throws(Status) -> Multicast?,
    _ publish: (_ count: Int64, _ owned: inout Payload?) -> Int64
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
    var count: Int64 = 0
    do throws(Status) {
      if options.isContradictory { throw .invalidArgument }
      if let multicast = try find() {
        if multicast.hasPolicies {
          return multicast.invokeWithPolicies(options, &owned, &outcome)
        }
        count = multicast.dispatch(options, &owned, &outcome)
      }
      count = publish(count, &owned)
    } catch {
      count = error.count
    }
    owned?.release()  //~ payload_of_failure_lost
    return count
  }
}

extension Multicast {
  /// - Parameter owned: The payload that the frame of the invocation retains. Afterwards the
  ///   payload that the frame retained at the end; the caller releases it.
  func dispatch(
    _ options: InvocationOptions, _ owned: inout Payload?, _ outcome: inout Dispatch.Outcome,
    number: UInt = .max
  ) -> Int64 {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      return Status.outOfMemory.count
    }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    var dispatch = Dispatch(options, number: number)
    // The time of the calls on this thread counts.
    let deadline = options.deadline
    var shared = owned
    let count = withUnsafeMutablePointer(to: &dispatch) { dispatch in
      var details = AnyCall.Details(
        invocation: options.invocation, visit: nil, dispatch: dispatch)
      return AnyCall.with(&details) { call in
        withList(on: thread) { list, frame, mode in
          // If the thread ends inside a call, the payload is released with the frame.
          shared?.pass(to: frame)
          let called = list.invoke(call, in: frame, mode)
          shared = Payload.take(from: frame)
          return called
        }
      }
    }
    owned = shared
    if count < 0 { return count }
    outcome.called = UInt64(count) &- dispatch.queued
    outcome.queued = dispatch.queued
    outcome.refused = dispatch.refused
    var status = Status.ok
    //~ no_wait_for_queued_calls
    if options.isWaiting, let shared {
      status = Receipt.wait(for: shared, of: target, deadline, &outcome)
    }
    return status == .timeout ? status.count : count
  }

  /// Invokes a multicast without queued delegates, and without options.
  ///
  /// - Parameter owned: As in `dispatch`.
  func invoke(_ invocation: Invocation, keeping owned: inout Payload?) -> Int64 {
    if owned == nil { return invokeOutlined(invocation) }
    var outcome = Dispatch.Outcome()
    return dispatch(InvocationOptions(invocation), &owned, &outcome)
  }
}
