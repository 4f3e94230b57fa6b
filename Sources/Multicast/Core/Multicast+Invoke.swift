import CMulticast
import Synchronization

/// What an invocation does with each delegate.
protocol Call {
  /// Whether delegates that were added with a queue are called later.
  static var isQueued: Bool { get }

  /// Whether a delegate that asked for some events alone is meant.
  func isWanted(_ events: UInt64) -> Bool

  /// - Returns: false to stop.
  func callAsFunction(
    _ function: multicast_function, _ context: UnsafeMutableRawPointer?
  ) -> Bool

  /// - Parameter frame: Keeps the copy of the payload for further calls.
  /// - Returns: whether a call was taken in.
  func queue(
    _ token: UInt64, in queue: UnsafeMutableRawPointer, _ frame: UnsafeMutablePointer<Frame>
  ) -> Bool
}

/// `multicast_invoke`: calls the function.
struct Invocation: Call {
  static let isQueued = true

  let event: UInt32
  let payload: UnsafeRawPointer?
  let size: Int

  @inline(__always) func isWanted(_ events: UInt64) -> Bool {
    event >= 64 || events & (1 << UInt64(event)) != 0
  }

  @inline(__always) func callAsFunction(
    _ function: multicast_function, _ context: UnsafeMutableRawPointer?
  ) -> Bool {
    Lock.checkNoneIsHeld()
    function(context, event, payload, size)
    return true
  }

  func queue(
    _ token: UInt64, in queue: UnsafeMutableRawPointer, _ frame: UnsafeMutablePointer<Frame>
  ) -> Bool {
    Delivery.queue.unsafelyUnwrapped(queue, token, event, payload, size, frame)
  }
}

/// `multicast_visit`: passes the delegate to the visitor.
struct Visit: Call {
  static let isQueued = false

  let visitor: multicast_visitor
  let context: UnsafeMutableRawPointer?

  func isWanted(_ events: UInt64) -> Bool { true }

  @inline(__always) func callAsFunction(
    _ function: multicast_function, _ context: UnsafeMutableRawPointer?
  ) -> Bool {
    var delegate = multicast_delegate(function: function, context: context)
    Lock.checkNoneIsHeld()
    return visitor(self.context, &delegate)
  }

  func queue(
    _ token: UInt64, in queue: UnsafeMutableRawPointer, _ frame: UnsafeMutablePointer<Frame>
  ) -> Bool { false }
}

extension Multicast {
  /// Calls every live delegate in order, on this thread.
  ///
  /// No lock, no read-modify-write, no allocation; no fence instruction where the kernel has the
  /// expedited barrier.
  ///
  /// - Returns: how many were called, or the number of a status.
  @inline(__always)
  func invoke<C: Call>(_ call: C) -> Int64 {
    guard let thread = ThreadRecord.current else { return enterAndInvoke(call) }
    // The two differ in one instruction a delegate; a choice in the loop would cost more.
    guard _fastPath(Fence.isAsymmetric) else { return invokeSymmetric(call, on: thread) }
    return invoke(call, on: thread, asymmetric: true)
  }

  // The unusual is not in line: the loop has the registers to itself.

  @inline(never)
  private func enterAndInvoke<C: Call>(_ call: C) -> Int64 {
    guard let thread = ThreadRegistry.enter() else { return Status.outOfMemory.count }
    // It may have run a queue inside, and somebody may wait for it to do so once more.
    defer { if ThreadRegistry.leaveIfEnding(thread) && Delivery.isInUse { Departures.wake() } }
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
    // The epoch is from before the frame can be seen: there is no frame without one.
    let epoch = Ticket.last
    guard let frame = thread.push() else { return Status.limit.count }
    frame.pointee.epoch.store(epoch, ordering: .relaxed)
    frame.pointee.list.store(0, ordering: .relaxed)
    // Release: a writer that sees the frame sees this epoch or a later one, and no list of before.
    frame.pointee.multicast.store(address, ordering: .releasing)
    // Pairs with the writers' heavy fence: they see this frame, or what follows here sees their
    // changes.
    Fence.light(asymmetric: asymmetric)

    guard isAdmitted(thread) || admit(thread) else { return Self.refuse(thread, frame) }
    // Acquire: pairs with `setList`. The handle is checked after the list was read: were it before,
    // the list could be that of the slot's next inhabitant.
    let header = storage.pointee.list.load(ordering: .acquiring)
    guard storage.pointee.header.id.load(ordering: .relaxed) == handle else {
      return Self.refuse(thread, frame)
    }
    var called: Int64 = 0
    if let header {
      frame.pointee.list.store(UInt(bitPattern: header), ordering: .relaxed)
      called = InvocationList(header).invoke(call, in: frame, asymmetric: asymmetric)
    }
    Self.leave(frame, of: thread, asymmetric: asymmetric)
    return called
  }

  /// Ends an invocation of what is not there.
  @inline(never)
  private static func refuse(
    _ thread: ThreadRecord, _ frame: UnsafeMutablePointer<Frame>
  ) -> Int64 {
    leave(frame, of: thread, asymmetric: Fence.isAsymmetric)
    return Status.invalidHandle.count
  }

  /// Ends an invocation. What it needs else stands in the frame: in the loop there is no register
  /// for it.
  @inline(__always)
  private static func leave(
    _ frame: UnsafeMutablePointer<Frame>, of thread: ThreadRecord, asymmetric: Bool
  ) {
    let address = frame.pointee.multicast.load(ordering: .relaxed)
    let epoch = frame.pointee.epoch.load(ordering: .relaxed)
    thread.pop(frame)
    // Pairs with the heavy fence of a writer that retired a list: it saw that this frame was gone,
    // or its ticket is seen here and the list is freed here.
    Fence.light(asymmetric: asymmetric)
    let storage = UnsafeMutablePointer<Storage>(bitPattern: address).unsafelyUnwrapped
    if _slowPath(storage.pointee.pending.load(ordering: .relaxed) > epoch) {
      Multicast(address: address).flush()
    }
  }

  /// Whether removers know that this thread invokes this inhabitant of the slot.
  ///
  /// Before the list is read: a writer that found itself alone has changed it without a fence,
  /// under the lock that `admit` takes; acquire, for who was let in by another thread's.
  @inline(__always)
  private func isAdmitted(_ thread: ThreadRecord) -> Bool {
    let number = storage.pointee.invoker.load(ordering: .acquiring) &- handle
    return number == UInt64(thread.storage.pointee.number) || number == Self.everyone
  }

  /// Makes this thread known as the only one that invokes, or as one of several.
  @inline(never)
  private func admit(_ thread: ThreadRecord) -> Bool {
    let stripe = self.stripe
    stripe.lock()
    defer { stripe.unlock() }
    guard isCurrent else { return false }
    let isFirst = storage.pointee.invoker.load(ordering: .relaxed) == handle
    let number = isFirst ? UInt64(thread.storage.pointee.number) : Self.everyone
    storage.pointee.invoker.store(handle &+ number, ordering: .releasing)
    checkInvariants()
    return true
  }

  /// Frees retired lists that nobody reads any more, such as the one that this invocation was the
  /// last to read. Without a fence: a list whose writer has not had its own yet stays.
  @inline(never)
  func flush() {
    let stripe = self.stripe
    stripe.lock()
    reap()
    checkInvariants()
    stripe.unlock()
  }
}
