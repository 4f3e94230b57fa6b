import MulticastHeader
import Synchronization

/// What an invocation does with each delegate.
protocol Call {
  /// Whether calls of delegates that were added with a queue are queued.
  static var isQueued: Bool { get }

  /// Whether a delegate with this mask of events is called.
  func wants(_ events: UInt64) -> Bool

  /// - Returns: false to stop.
  func callAsFunction(
    _ function: multicast_function, _ context: UnsafeMutableRawPointer?
  ) -> Bool

  /// - Returns: whether a call was queued.
  func append(_ token: Token, to queue: Queue, _ frame: Frame) -> Bool

  /// Called after the last delegate, if not every delegate was plain.
  func finish(_ frame: Frame)
}

/// `multicast_invoke`: calls the function.
extension Invocation: Call {
  static var isQueued: Bool { true }

  @inline(__always) func wants(_ events: UInt64) -> Bool { isWanted(events) }

  @inline(__always) func callAsFunction(
    _ function: multicast_function, _ context: UnsafeMutableRawPointer?
  ) -> Bool {
    Lock.checkNoneIsHeld()
    function(context, event, payload, size)
    return true
  }

  func append(_ token: Token, to queue: Queue, _ frame: Frame) -> Bool {
    if WaitingCall.holds(size) { return queue.append(token, self, sharing: nil, frame) == .queued }
    return queue.appendLarge(token, self, frame) == .queued
  }

  @inline(__always) func finish(_ frame: Frame) {
    if frame.payload != 0 { Payload.release(of: frame) }
  }
}

/// `multicast_visit`: passes the delegate to the visitor.
struct Visit: Call {
  static var isQueued: Bool { false }

  let visitor: multicast_visitor
  let context: UnsafeMutableRawPointer?

  func wants(_ events: UInt64) -> Bool { true }

  @inline(__always) func callAsFunction(
    _ function: multicast_function, _ context: UnsafeMutableRawPointer?
  ) -> Bool {
    var delegate = multicast_delegate(function: function, context: context)
    Lock.checkNoneIsHeld()
    return visitor(self.context, &delegate)
  }

  func append(_ token: Token, to queue: Queue, _ frame: Frame) -> Bool { false }
  func finish(_ frame: Frame) {}
}

extension Multicast {
  /// Calls every live delegate in order, on this thread.
  ///
  /// It takes no lock, makes no atomic read-modify-write and no allocation; and no fence
  /// instruction if the kernel has the expedited membarrier.
  ///
  /// - Returns: how many were called, or the number of a status.
  @inline(__always)
  func invoke<C: Call>(_ call: C) -> Int64 {
    guard let thread = ThreadRecord.current else { return enterAndInvoke(call) }
    // The two variants differ in one instruction for each delegate. To choose in the loop would
    // cost more.
    guard _fastPath(Fence.isAsymmetric) else { return invokeSymmetric(call, on: thread) }
    return invoke(call, on: thread, asymmetric: true)
  }

  // What is unusual is not inlined, so that the loop has all registers.

  @inline(never)
  private func enterAndInvoke<C: Call>(_ call: C) -> Int64 {
    guard let thread = ThreadRegistry.enter() else { return Status.outOfMemory.count }
    // The thread may have run a queue inside, and another one may wait for it to run it again.
    defer { if ThreadRegistry.leaveIfEnding(thread, true) && Queue.isInUse { Waits.wake() } }
    return Fence.isAsymmetric
      ? invoke(call, on: thread, asymmetric: true) : invokeSymmetric(call, on: thread)
  }

  @inline(never)
  private func invokeSymmetric<C: Call>(_ call: C, on thread: ThreadRecord) -> Int64 {
    invoke(call, on: thread, asymmetric: false)
  }

  @inline(__always)
  private func invoke<C: Call>(
    _ call: C, on thread: ThreadRecord, asymmetric: Bool
  ) -> Int64 {
    withList(on: thread, asymmetric: asymmetric) { list, frame in
      list.invoke(call, in: frame, asymmetric: asymmetric)
    }
  }

  /// Reads the list with a frame that keeps it from being freed.
  ///
  /// - Returns: the result of the body, or the number of a status.
  @inline(__always)
  func withList(
    on thread: ThreadRecord, asymmetric: Bool, _ body: (InvocationList, Frame) -> Int64
  ) -> Int64 {
    // The epoch is read before the frame can be seen: no frame is ever without one.
    let epoch = Epoch.current
    guard let frame = thread.push() else { return Status.limit.count }
    frame.publish(target, epoch: epoch)
    // Pairs with the writers' heavy fence: they see this frame, or the reads below see their
    // changes.
    Fence.light(asymmetric: asymmetric)

    guard isRegistered(thread) || registerInvoker(thread) else {  //~ invoker_not_registered
      return Self.refuse(thread, frame)
    }
    // Acquire: pairs with `setList`. The handle is compared after the list was read. Before, the
    // list could be that of the next occupant of the slot.
    let list = fields.list.load(ordering: .acquiring)
    guard fields.header.id.load(ordering: .relaxed) == handle else {
      return Self.refuse(thread, frame)
    }
    var called: Int64 = 0
    if let list {
      frame.list = UInt(bitPattern: list)
      called = body(InvocationList(list), frame)
    }
    Self.leave(frame, of: thread, asymmetric: asymmetric)
    return called
  }

  /// Ends an invocation of a multicast that does not exist.
  @inline(never)
  private static func refuse(_ thread: ThreadRecord, _ frame: Frame) -> Int64 {
    leave(frame, of: thread, asymmetric: Fence.isAsymmetric)
    return Status.invalidHandle.count
  }

  /// Ends an invocation. What this needs is in the frame: the loop has no register left for it.
  @inline(__always)
  private static func leave(_ frame: Frame, of thread: ThreadRecord, asymmetric: Bool) {
    let (target, epoch) = (frame.target, frame.epoch)
    thread.pop(frame)
    // Pairs with the heavy fence of a writer that retired a list: the writer sees that this frame
    // is gone, or this reads the epoch of the retired list, and frees it.
    Fence.light(asymmetric: asymmetric)
    let storage = target.invokedSlot.assumingMemoryBound(to: Storage.self)
    if _slowPath(storage.pointee.newestRetired.load(ordering: .relaxed) > epoch) {
      Multicast(target).reclaimLists()
    }
  }

  /// Whether this thread is registered as an invoker of this multicast.
  ///
  /// Asked before the list is read: a writer that found a single invoker has made its change
  /// without a fence, under the lock that `registerInvoker` takes. Acquire: pairs with the
  /// release of `registerInvoker`, by which another thread has let several threads in, this one
  /// too.
  @inline(__always)
  private func isRegistered(_ thread: ThreadRecord) -> Bool {
    let number = fields.invoker.load(ordering: .acquiring) &- handle.rawValue
    return number == UInt64(thread.number) || number == Self.multipleInvokers
  }

  /// Registers this thread as the single invoker, or as one of several.
  @inline(never)
  private func registerInvoker(_ thread: ThreadRecord) -> Bool {
    let stripe = self.stripe
    stripe.lock()
    defer { stripe.unlock() }
    guard isCurrent else { return false }
    let isFirst = fields.invoker.load(ordering: .relaxed) == handle.rawValue
    let number = isFirst ? UInt64(thread.number) : Self.multipleInvokers
    fields.invoker.store(handle.rawValue &+ number, ordering: .releasing)
    checkInvariants()
    return true
  }
}
