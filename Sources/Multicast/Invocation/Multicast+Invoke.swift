import MulticastHeader
import MulticastShims
import Synchronization

extension Multicast {
  /// Calls every live delegate in order, on this thread.
  ///
  /// It takes no lock, makes no atomic read-modify-write and no allocation; and no fence
  /// instruction if the kernel has the expedited membarrier, unless the multicast is fenced.
  ///
  /// - Returns: how many were called, or the number of a status.
  @inline(__always)
  func invoke<C: Call>(_ call: C) -> Int64 {
    guard let thread = ThreadRecord.current else { return enterAndInvoke(call) }
    guard let frame = enter(thread) else { return invokeWithoutFrame(call) }
    // The loops with light and with full fences differ. To choose in the loop would cost more.
    guard isBiased(thread) else { return admitAndInvoke(thread, frame, call) }
    return withList(thread, frame, asymmetric: true) { list in list.invoke(call, in: frame) }
  }

  /// The same, not inlined: for callers to whom one more function call costs little.
  @_optimize(speed)
  func invokeOutlined(_ invocation: Invocation) -> Int64 { invoke(invocation) }

  // Unusual cases are not inlined, so that the loop has all registers.

  @inline(never)
  private func enterAndInvoke<C: Call>(_ call: C) -> Int64 {
    AnyCall.with(call) { call in enterAndInvoke(call) }
  }

  private func enterAndInvoke(_ call: AnyCall) -> Int64 {
    guard let thread = ThreadRegistry.enter() else { return Status.outOfMemory.count }
    defer { ThreadRegistry.leaveIfEnding(thread, true) }
    // Its stack is empty, so there is a frame.
    return admitAndInvoke(thread, enter(thread).unsafelyUnwrapped, call)
  }

  /// Invocations are nested too deep. One that its policies defer needs no frame.
  @inline(never)
  private func invokeWithoutFrame<C: Call>(_ call: C) -> Int64 {
    if hasPolicies { return AnyCall.with(call) { invokeWithPolicies($0) } }
    return Status.limit.count
  }

  @inline(never)
  private func admitAndInvoke<C: Call>(_ thread: ThreadRecord, _ frame: Frame, _ call: C) -> Int64 {
    AnyCall.with(call) { call in admitAndInvoke(thread, frame, call) }
  }

  /// Looks at the special bits, and registers this thread if need be.
  @_optimize(speed)
  private func admitAndInvoke(_ thread: ThreadRecord, _ frame: Frame, _ call: AnyCall) -> Int64 {
    guard let mode = admit(thread) else { return Self.refuse(thread, frame) }
    guard mode.hasPolicies else {
      return withList(thread, frame, asymmetric: mode.isBiased) { list in
        list.invoke(call, in: frame, mode)
      }
    }
    guard let visit = call.details.visit else {
      Self.leave(frame, of: thread, asymmetric: mode.isBiased)
      return invokeWithPolicies(call)
    }
    // Policies do not count for a visit, but for what was deferred meanwhile.
    let count = withList(thread, frame, asymmetric: mode.isBiased) { list in
      self.visit(visit, orUndo: nil, in: list, frame, mode)
    }
    invokeDeferred(on: thread)
    return count
  }

  /// Reads the list with a frame that keeps it from being freed. Policies do not count.
  ///
  /// - Returns: the result of the body, or the number of a status.
  @inline(__always)
  func withList(
    on thread: ThreadRecord, _ body: (_ list: InvocationList, Frame, Mode) -> Int64
  ) -> Int64 {
    guard let frame = enter(thread) else { return Status.limit.count }
    var mode = Mode.plain
    if !isBiased(thread) {
      guard let admitted = admit(thread) else { return Self.refuse(thread, frame) }
      mode = admitted
    }
    return withList(thread, frame, asymmetric: mode.isBiased) { list in body(list, frame, mode) }
  }

  /// Begins an invocation: publishes its frame.
  ///
  /// - Returns: nil if invocations are nested too deep.
  @inline(__always)
  private func enter(_ thread: ThreadRecord) -> Frame? {
    // The epoch is read before the frame can be seen: no frame is ever without one.
    let epoch = Epoch.current
    guard let frame = thread.push() else { return nil }
    frame.publish(target, epoch: epoch)
    // Pairs with the writers' heavy fence: they see this frame, or the reads below see their
    // changes. If there is no such fence, `admit` makes a full one.
    Fence.light(asymmetric: true)
    return frame
  }

  /// - Parameter asymmetric: Whether the invocation is biased.
  private func withList(
    _ thread: ThreadRecord, _ frame: Frame, asymmetric: Bool, _ body: (InvocationList) -> Int64
  ) -> Int64 {
    // Acquire: pairs with `setList`. The handle is compared after the list was read. Before, the
    // list could be that of the next occupant of the slot.
    let list = fields.list.load(ordering: .acquiring)  // order: next_occupant
    guard fields.header.id.load(ordering: .relaxed) == handle else {
      return Self.refuse(thread, frame)
    }
    var called: Int64 = 0
    if let list {
      frame.list = UInt(bitPattern: list)
      called = body(InvocationList(list))
    }
    if !asymmetric { didCallFenced(called, thread) }
    Self.leave(frame, of: thread, asymmetric: asymmetric)
    return called
  }

  /// Ends an invocation of a multicast that does not exist. The slot may have a fenced one now, so
  /// this makes a full fence.
  private static func refuse(_ thread: ThreadRecord, _ frame: Frame) -> Int64 {
    leave(frame, of: thread, asymmetric: false)
    return Status.invalidHandle.count
  }

  /// Ends an invocation. Its data is in the frame: the loop has no register left.
  @inline(__always)
  private static func leave(_ frame: Frame, of thread: ThreadRecord, asymmetric: Bool) {
    let (target, epoch) = (frame.target, frame.epoch)
    thread.pop(frame)
    // Pairs with the fence of a writer that retired a list: the writer sees that this frame is
    // gone, or this reads the epoch of the retired list, and frees it.
    Fence.light(asymmetric: asymmetric)
    let storage = target.invokedSlot.assumingMemoryBound(to: Storage.self)
    if _slowPath(storage.pointee.newestRetired.load(ordering: .relaxed) > epoch) {
      Multicast(target).reclaimLists()
    }
  }

  // MARK: - Invokers

  /// The special properties of an invocation.
  struct Mode {
    static var plain: Mode { Mode(special: 0) }

    fileprivate let special: UInt64

    /// Otherwise there is a full fence for each delegate.
    var isBiased: Bool { special & (fenced | watched) == 0 }
    var isWatched: Bool { special & watched != 0 }
    var hasPolicies: Bool { special & withPolicies != 0 }
  }

  /// Registers this thread as the first invoker, without the lock.
  ///
  /// A writer takes the lock, and then reads who has invoked (`invokerNumber`). This thread
  /// registers, and then looks at the lock. Each makes a full fence in between. So a writer that
  /// takes the lock after that look finds this thread. If a writer has the lock, it may have found
  /// none, make its change without a fence, and store the word anew: then this thread registers
  /// under the lock, too. Of a writer that has had the lock, this thread sees everything, also that
  /// the word is another one, or that all multicasts are watched.
  ///
  /// - Returns: whether it is the first, and nothing is special. Otherwise `admit` looks again: so
  ///   no call returns to the loop, which has no register for it.
  @inline(__always)
  private func becomesFirst(_ thread: ThreadRecord) -> Bool {
    let first = UInt64(thread.number)
    guard Fence.isAsymmetric,
      fields.invoker.compareExchange(
        expected: handle.rawValue, desired: handle.rawValue &+ first,
        ordering: .sequentiallyConsistent  // order: first_invoker
      ).exchanged
    else { return false }
    guard _fastPath(stripe.isFree && Watch.ofAll == 0) else {
      _ = registerInvoker(thread)
      return false
    }
    return invokers == first
  }

  /// The word of the invokers without the handle.
  ///
  /// Read before the list is: a writer that found a single invoker has made its change without a
  /// fence, under the lock that `registerInvoker` takes. Acquire: pairs with the release of
  /// `registerInvoker`, by which another thread has let several threads in, this one too; with that
  /// of `observe`; and with that of `endFencing`.
  private var invokers: UInt64 {
    fields.invoker.load(ordering: .acquiring) &- handle.rawValue  // order: invokers
  }

  /// Whether this thread is one of the invokers, or becomes the first, and nothing is special.
  @inline(__always)
  private func isBiased(_ thread: ThreadRecord) -> Bool {
    let invokers = self.invokers
    if invokers >= Self.open { return true }
    // Hidden from the compiler, which makes more instructions of one question than of three.
    let single = shims_keep(UnsafeMutableRawPointer(bitPattern: UInt(invokers)))
    if UInt(bitPattern: single) == UInt(thread.number) { return true }
    return single == nil && becomesFirst(thread)
  }

  /// Registers this thread if need be, and makes a full fence if the multicast is not biased.
  ///
  /// The frame is published. It returns the mode of the value that it read last.
  ///
  /// - Returns: nil if the multicast does not exist.
  @inline(__always)
  private func admit(_ thread: ThreadRecord) -> Mode? {
    repeat {
      let word = invokers
      // From the word of another occupant this makes no number of a thread.
      let number = (word >= Self.open ? word &- Self.open : word) & ~Self.special
      //~ invoker_not_registered
      if number == UInt64(thread.number) || number == Self.multipleInvokers {
        let mode = Mode(special: word & Self.special)
        // Pairs with the full fence of a writer: it sees this frame, or what this reads next are
        // its changes.
        if !mode.isBiased { Fence.full() }
        return mode
      }
    } while registerInvoker(thread)
    return nil
  }

  /// Registers this thread as the single invoker, or as one of several.
  private func registerInvoker(_ thread: ThreadRecord) -> Bool {
    let stripe = self.stripe
    stripe.lock()
    defer { stripe.unlock() }
    guard isCurrent else { return false }
    addInvoker(UInt64(thread.number))
    return true
  }

  /// The stripe's lock is held.
  private func addInvoker(_ own: UInt64) {
    let special = invokerNumber & Self.special
    let known = invokerNumber & ~(special | Self.open)
    let number = known == 0 || known == own ? own : Self.multipleInvokers
    // Without membarrier every multicast is fenced, for good.
    let fenced = Fence.isAsymmetric ? 0 : Self.fenced
    invokerNumber = number | special | fenced | Watch.ofAll
    checkInvariants()
  }
}
