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
    return Fence.isAsymmetric
      ? invokeAsymmetric(call, on: thread) : invokeSymmetric(call, on: thread)
  }

  // Functions of their own, so that what comes before them needs no registers saved.

  @inline(never)
  private func enterAndInvoke<C: Call>(_ call: C) -> Int64 {
    ThreadRegistry.enter() == nil ? Status.outOfMemory.count : invoke(call)
  }

  @inline(never)
  private func invokeAsymmetric<C: Call>(_ call: C, on thread: ThreadRecord) -> Int64 {
    invoke(call, on: thread, asymmetric: true)
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
    let depth = thread.storage.pointee.depth
    guard depth < ThreadRecord.frameLimit else { return Status.limit.count }
    thread.storage.pointee.depth = depth &+ 1
    let frame = thread.frame(depth)
    frame.pointee.epoch.store(epoch, ordering: .relaxed)
    frame.pointee.list.store(0, ordering: .relaxed)
    // Release: a writer that sees the frame sees this epoch or a later one, and no list of before.
    frame.pointee.multicast.store(address, ordering: .releasing)
    // Pairs with the writers' heavy fence: they see this frame, or what follows here sees their
    // changes.
    Fence.light(asymmetric: asymmetric)

    var called = Status.invalidHandle.count
    if isAdmitted(thread) || admit(thread) {
      // Acquire: pairs with `setList`. The handle is checked after the list was read: were it
      // before, the list could be that of the slot's next inhabitant.
      let header = storage.pointee.list.load(ordering: .acquiring)
      if storage.pointee.header.id.load(ordering: .relaxed) == handle {
        called = 0
        if let header {
          let list = InvocationList(header)
          frame.pointee.list.store(UInt(bitPattern: header), ordering: .relaxed)
          called =
            asymmetric
            ? list.invokeAsymmetric(call, in: frame) : list.invokeSymmetric(call, in: frame)
        }
      }
    }

    // Release: a writer that does not see the frame any more may free what it read.
    frame.pointee.multicast.store(0, ordering: .releasing)
    thread.storage.pointee.depth = depth
    // Pairs with the heavy fence of a writer that retired a list: it saw that this frame was gone,
    // or its ticket is seen here and the list is freed here.
    Fence.light(asymmetric: asymmetric)
    if storage.pointee.pending.load(ordering: .relaxed) > epoch { flush() }
    return called
  }

  /// Whether removers know that this thread invokes this inhabitant of the slot.
  ///
  /// Before the list is read: a writer that found itself alone has changed it without a fence, under
  /// the lock that `admit` takes; acquire, for who was let in by another thread's.
  @inline(__always)
  private func isAdmitted(_ thread: ThreadRecord) -> Bool {
    let known = storage.pointee.invoker.load(ordering: .acquiring)
    let number = known &- Handle.generation(of: handle)
    return number == UInt64(thread.storage.pointee.number) || number == Self.everyone
  }

  /// Makes this thread known as the only one that invokes, or as one of several.
  @inline(never)
  private func admit(_ thread: ThreadRecord) -> Bool {
    let stripe = self.stripe
    stripe.lock()
    defer { stripe.unlock() }
    guard isCurrent else { return false }
    let generation = Handle.generation(of: handle)
    let isFirst = storage.pointee.invoker.load(ordering: .relaxed) == generation
    let number = isFirst ? UInt64(thread.storage.pointee.number) : Self.everyone
    storage.pointee.invoker.store(generation | number, ordering: .releasing)
    return true
  }

  /// Frees retired lists that nobody reads any more, such as the one that this invocation was the
  /// last to read. Without a fence: a list whose writer has not had its own yet stays.
  @inline(never)
  func flush() {
    let stripe = self.stripe
    stripe.lock()
    reap()
    stripe.unlock()
  }
}
