import MulticastHeader
import Synchronization

/// The options of an invocation: a caller's `multicast_invocation`, already checked.
struct InvocationOptions {
  typealias Copy =
    @convention(c) (_ payload: UnsafeRawPointer?, _ size: Int) -> UnsafeRawPointer?

  let invocation: Invocation
  private(set) var copy: Copy? = nil
  /// Releases the result of `copy`, or the caller's payload if there is no `copy`.
  private(set) var release: Payload.Release? = nil
  /// Whether the invocation waits for its queued calls.
  private(set) var isWaiting = false
  private var timeout: UInt64 = 0

  /// The options of an invocation for which the caller has not specified any.
  init(_ invocation: Invocation) { self.invocation = invocation }

  /// - Returns: nil if the caller's struct has unknown fields or flags, in which case no field may
  ///   be read.
  init?(_ given: UnsafePointer<multicast_invocation>?) {
    guard let given, StructSize.isValid(given, smallest: StructSize.invocation) else { return nil }
    let options = given.pointee
    guard options.flags & ~MULTICAST_WAIT == 0, options.reserved == 0 else { return nil }
    invocation = Invocation(event: options.event, payload: options.payload, size: options.size)
    copy = options.copy
    release = options.release
    isWaiting = options.flags & MULTICAST_WAIT != 0
    timeout = options.timeout_ns
  }

  /// Whether the options are readable but contradictory: the size is not 0, but there are no bytes
  /// to copy. If there is a `copy` or `release` function, the payload and its size are only passed
  /// on, so they may have any values.
  var isContradictory: Bool {
    invocation.payload == nil && invocation.size != 0 && copy == nil && release == nil
  }

  /// Whether the caller has handed over the original payload.
  var isOwned: Bool { release != nil && copy == nil }

  /// Whether the payload must be copied if the invocation is made later.
  var needsCopy: Bool { copy != nil || invocation.size != 0 }

  /// The deadline of a wait that starts now.
  var deadline: Timeout { timeout == 0 ? .unlimited : .nanoseconds(timeout) }
}

/// One invocation with options. Such an invocation may own its payload, wait for its queued calls,
/// and report their outcome.
struct Dispatch {
  let options: InvocationOptions
  /// The number of the invocation if it is kept for replays; otherwise the highest possible number.
  let number: UInt
  /// The notified name if observers of a prefix are being called; otherwise nil.
  let name: UnsafePointer<CChar>?

  // The outcome of the calls so far.

  private(set) var queued: UInt64 = 0
  private(set) var refused: UInt64 = 0
  /// Whether `copy` has failed, in which case `copy` is not called again.
  fileprivate var hasNoCopy = false

  init(
    _ options: InvocationOptions, number: UInt = .max, name: UnsafePointer<CChar>? = nil
  ) {
    self.options = options
    self.number = number
    self.name = name
  }

  mutating func enqueue(_ token: Token, to queue: Queue, _ frame: Frame) -> Queue.EnqueueResult {
    let outcome: Queue.EnqueueResult
    do throws(Status) {
      if needsPayload { try preparePayload(for: queue, frame) }
      outcome = queue.enqueue(
        token, options.invocation, sharing: Payload(retainedBy: frame), frame)
    } catch { outcome = queue.refuse(token) }
    if outcome == .queued { queued &+= 1 }
    if outcome == .refused { refused &+= 1 }
    return outcome
  }

  // MARK: - The payload of queued calls

  /// Whether the queued calls share the payload. Otherwise it is small, and each call copies it.
  private var needsPayload: Bool {
    options.isWaiting || options.copy != nil || options.release != nil || name != nil
      || !WaitingCall.holds(options.invocation.size)
  }

  /// Makes the frame retain the payload or receipt that the next call for this queue will share. If
  /// the invocation owns its payload, the frame is already retaining it.
  private mutating func preparePayload(for queue: Queue, _ frame: Frame) throws(Status) {
    if Payload(retainedBy: frame) == nil { try makePayload(for: queue).pass(to: frame) }
    let payload = Payload(retainedBy: frame).unsafelyUnwrapped
    // The named payload takes over the frame's reference.
    if let name, payload.name == nil { try Payload(payload, named: name).pass(to: frame) }
    guard options.isWaiting else { return }
    let newest = Payload(retainedBy: frame).unsafelyUnwrapped
    if newest.isReceipt && Receipt(newest).queue.handle == queue.handle { return }
    // The receipt takes over the frame's reference.
    let receipt = try Receipt(after: newest, for: queue)
    receipt.payload.pass(to: frame)  //~ previous_not_retained
  }

  private mutating func makePayload(for queue: Queue) throws(Status) -> Payload {
    let invocation = options.invocation
    if options.copy == nil, invocation.size != 0, let bytes = invocation.payload {
      return try queue.copy(bytes, size: invocation.size)
    }
    if hasNoCopy { throw .outOfMemory }
    return try Self.makePayload(options, &hasNoCopy)
  }

  static func makePayload(
    _ options: InvocationOptions, _ hasNoCopy: inout Bool
  ) throws(Status) -> Payload {
    let (payload, size) = (options.invocation.payload, options.invocation.size)
    guard let copy = options.copy else {
      // If the size is 0, the delegates receive the caller's pointer itself.
      guard size != 0, let payload else { return try Payload(owning: payload, size: 0, nil) }
      return try Payload(copying: payload, size: size)
    }
    // Allocate before calling `copy`, because a failed allocation has no side effects.
    let block = try Allocator.allocate(size: Payload.headerSize)
    Lock.checkNoneIsHeld()
    guard let copied = copy(payload, size) else {
      hasNoCopy = true  //~ copied_again
      Allocator.deallocate(block, size: Payload.headerSize)
      throw .outOfMemory
    }
    return Payload(block, .owned, copied, size, options.release)
  }
}

extension Dispatch {
  /// Takes over the payload that the caller of an invocation hands over.
  static func takeOver(_ options: InvocationOptions) throws(Status) -> Payload {
    let (payload, size) = (options.invocation.payload, options.invocation.size)
    do throws(Status) { return try Payload(owning: payload, size: size, options.release) } catch {
      Payload.release(payload, size, options.release)  // even if the invocation fails
      throw error
    }
  }
}

extension Multicast {
  /// - Parameter owned: The payload that the invocation's frame retains. On return, this is the
  ///   payload that the frame retained last, and the caller releases it.
  func dispatch(
    _ options: InvocationOptions, _ owned: inout Payload?, _ outcome: inout multicast_outcome,
    number: UInt = .max, name: UnsafePointer<CChar>? = nil, until given: Timeout? = nil
  ) -> Int64 {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      return Status.outOfMemory.count
    }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    var dispatch = Dispatch(options, number: number, name: name)
    // The calls on this thread count toward the timeout.
    let deadline = given ?? options.deadline
    // `copy` is not called again if it has already failed for the observers of the name, which are
    // called before the observers of a prefix.
    dispatch.hasNoCopy = options.copy != nil && owned == nil && outcome.refused > 0
    let outer = thread.storage.pointee.named
    var shared = owned
    let count = withUnsafeMutablePointer(to: &dispatch) { dispatch in
      AnyCall.with(AnyCall.Details(options.invocation, dispatch)) { call in
        withList(on: thread) { list, frame, mode in
          // If the thread ends inside a call, the payload is released together with the frame.
          shared?.pass(to: frame)
          if let name { thread.storage.pointee.named = (name, frame.fields) }
          let called = list.invoke(call, in: frame, mode)
          thread.storage.pointee.named = outer
          shared = Payload.take(from: frame)
          return called
        }
      }
    }
    owned = shared
    if count < 0 { return count }
    outcome.called &+= UInt64(count) &- dispatch.queued
    outcome.queued &+= dispatch.queued
    outcome.refused &+= dispatch.refused
    var status = Status.ok
    //~ no_wait_for_queued_calls
    if options.isWaiting, let shared {
      status = Receipt.wait(for: shared, of: target, deadline, &outcome)
    }
    return status == .timeout ? status.count : count
  }

  /// Invokes the multicast without options. None of its delegates has a queue.
  ///
  /// - Parameter owned: See the parameter `owned` of `dispatch`.
  func invoke(_ invocation: Invocation, keeping owned: inout Payload?) -> Int64 {
    if owned == nil { return invokeOutlined(invocation) }
    var outcome = multicast_outcome()
    return dispatch(InvocationOptions(invocation), &owned, &outcome)
  }
}

extension Receipt {
  /// Waits for an invocation's queued calls. Does not wait for a call that only this thread can
  /// make or that is waiting for this thread. The caller holds no lock, and the invocation has
  /// already withdrawn its frame.
  ///
  /// - Parameters:
  ///   - newest: The newest receipt, or the payload if no call has been queued.
  ///   - target: The multicast, whose watch is notified of a long wait.
  /// - Returns: `ok` or `timeout`.
  static func wait(
    for newest: Payload, of target: Target, _ timeout: Timeout,
    _ outcome: inout multicast_outcome
  ) -> Status {
    var status = Status.ok
    var next = newest
    var stallDetection = StallDetection(with: Multicast(target).handle)
    while next.isReceipt && status != .timeout {
      let receipt = Receipt(next)
      repeat {
        status = Waits.sleep(for: receipt.wait, stallDetection.limit(timeout)) { receipt.isOver }
      } while status == .timeout && stallDetection.notifyIfStalled(receipt.runningCall)
      next = receipt.previous
    }
    next = newest
    while next.isReceipt {
      let (made, left) = Receipt(next).calls
      outcome.finished &+= UInt64(made)  //~ made_not_counted
      outcome.unfinished &+= UInt64(left)  //~ unfinished_not_counted
      next = Receipt(next).previous
    }
    return status == .timeout ? .timeout : .ok
  }

  /// The token of a running call, or `.none` if all calls are waiting in the queue.
  private var runningCall: Token {
    let receipt = UInt(bitPattern: payload.header)
    for record in ThreadRegistry.all {
      let frame = record.firstFrame { frame, _, _ in frame.payload == receipt }
      if let token = frame?.hazard, token.kind == .registration { return token }
    }
    return .none
  }
}
