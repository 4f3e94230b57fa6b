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
    guard let list = loadList() else { return invokeEmpty(call) }
    return invoke(call, reading: list)
  }

  /// - Parameter list: The current list, which no frame names yet.
  @inline(__always)
  func invoke<C: Call>(_ call: C, reading list: InvocationList.Address) -> Int64 {
    guard let thread = ThreadRecord.current else { return enterAndInvoke(call) }
    guard let frame = enter(thread, list) else { return invokeWithoutFrame(call) }
    // The mode is read between the publication of the list and the second look at it: a single
    // invoker frees lists without a fence, until this thread is registered.
    if _slowPath(!isInvoker(thread)) {
      guard claim(thread) else { return admitAndInvoke(thread, frame, call) }
      guard _fastPath(isClaimValid) else { return registerAndInvoke(thread, frame, call) }
      guard isInvoker(thread) else { return admitAndInvoke(thread, frame, call) }
    }
    guard unsafeBitCast(loadList(), to: UInt.self) == UInt(bitPattern: list) else {
      return admitAndInvoke(thread, frame, call)
    }
    guard isCurrentAfterList else { return Self.refuse(thread, frame) }
    let called = InvocationList(list).invoke(call, in: frame)
    // The record is looked up again: the loop has no register for it.
    Self.leave(frame, of: ThreadRecord.currentAgain, asymmetric: true)
    return called
  }

  /// Like `invoke`, but not inlined: for callers to whom one more function call costs little.
  @_optimize(speed)
  func invokeOutlined(_ invocation: Invocation) -> Int64 { invoke(invocation) }

  // Unusual cases are not inlined, so that the loop has all registers.

  @inline(never)
  private func enterAndInvoke<C: Call>(_ call: C) -> Int64 {
    AnyCall.with(call) { call in enterAndInvoke(call) }
  }

  private func enterAndInvoke(_ call: AnyCall) -> Int64 {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      return Status.outOfMemory.count
    }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    guard let frame = enter(thread, loadList()) else { return invokeWithoutFrame(call) }
    return admitAndInvoke(thread, frame, call)
  }

  /// Nothing was added yet. Without a frame, since nothing is read that could be freed.
  @inline(__always)
  func invokeEmpty<C: Call>(_ call: C) -> Int64 {
    guard let thread = ThreadRecord.current, thread.hasRoom, isInvoker(thread) else {
      return enterAndInvoke(call)
    }
    return isCurrentAfterList ? 0 : Status.invalidHandle.count
  }

  /// Invocations are nested too deep. An invocation that its policies defer needs no frame.
  @inline(never)
  private func invokeWithoutFrame<C: Call>(_ call: C) -> Int64 {
    AnyCall.with(call) { call in invokeWithoutFrame(call) }
  }

  private func invokeWithoutFrame(_ call: AnyCall) -> Int64 {
    hasPolicies ? invokeWithPolicies(call) : Status.limit.count
  }

  @inline(never)
  private func admitAndInvoke<C: Call>(_ thread: ThreadRecord, _ frame: Frame, _ call: C) -> Int64 {
    AnyCall.with(call) { call in admitAndInvoke(thread, frame, call) }
  }

  @inline(never)
  private func registerAndInvoke<C: Call>(
    _ thread: ThreadRecord, _ frame: Frame, _ call: C
  ) -> Int64 {
    _ = registerInvoker(thread)
    return admitAndInvoke(thread, frame, call)
  }

  /// Looks at the special bits, and registers this thread if need be.
  @_optimize(speed)
  private func admitAndInvoke(_ thread: ThreadRecord, _ frame: Frame, _ call: AnyCall) -> Int64 {
    guard let mode = admit(thread, frame) else { return Self.refuse(thread, frame) }
    guard mode.hasPolicies else {
      return withList(thread, frame, mode) { list in list.invoke(call, in: frame, mode) }
    }
    guard let visit = call.visit else {
      Self.leave(frame, of: thread, asymmetric: mode.isBiased)
      return invokeWithPolicies(call)
    }
    // Policies do not count for a visit, but for what was deferred meanwhile.
    let count = withList(thread, frame, mode) { list in
      list.visit(visit, orUndo: nil, in: frame, mode)
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
    guard let frame = enter(thread, loadList()) else { return Status.limit.count }
    guard let mode = admit(thread, frame) else { return Self.refuse(thread, frame) }
    return withList(thread, frame, mode) { list in body(list, frame, mode) }
  }

  /// The body is not called if nothing was added yet.
  private func withList(
    _ thread: ThreadRecord, _ frame: Frame, _ mode: Mode, _ body: (InvocationList) -> Int64
  ) -> Int64 {
    let list = protectedList(frame, mode)
    guard isCurrentAfterList else { return Self.refuse(thread, frame) }
    let called = list.map { body(InvocationList($0)) } ?? 0
    if !mode.isBiased { didCallFenced(called, thread) }
    Self.leave(frame, of: thread, asymmetric: mode.isBiased)
    return called
  }

  // MARK: - The frame

  /// Acquire: pairs with `setList`.
  @inline(__always)
  func loadList() -> InvocationList.Address? {
    fields.list.load(ordering: .acquiring)  // order: next_occupant
  }

  /// Whether the list that was read is that of this multicast. Looked at after the list was read:
  /// before, the list could be that of the slot's next occupant.
  @inline(__always)
  private var isCurrentAfterList: Bool { fields.header.id.load(ordering: .relaxed) == handle }

  /// Begins an invocation: publishes its frame, and the list that it is going to read.
  ///
  /// - Returns: nil if invocations are nested too deep.
  @inline(__always)
  private func enter(_ thread: ThreadRecord, _ list: InvocationList.Address?) -> Frame? {
    guard let frame = thread.push() else { return nil }
    frame.publish(target, reading: UInt(bitPattern: list))
    // Pairs with the writers' heavy fence: they see this frame, or the reads below see their
    // changes. If there is no such fence, `admit` makes a full one.
    Fence.light(asymmetric: true)
    return frame
  }

  /// The current list, which the frame names. The fence that `mode` asks for was made after the
  /// frame was published.
  private func protectedList(_ frame: Frame, _ mode: Mode) -> InvocationList.Address? {
    var list = loadList()
    while UInt(bitPattern: list) != frame.list {
      let last = frame.list
      frame.publish(reading: UInt(bitPattern: list))
      mode.fence()
      reclaim(last)  // a writer may have kept it for this frame
      list = loadList()  //~ list_not_read_again
    }
    return list
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
    let (target, list) = (frame.target, frame.list)
    thread.pop(frame)
    // Pairs with the fence of a writer that replaced the list: the writer sees that this frame is
    // gone, or this sees that there is another list, and frees its own.
    Fence.light(asymmetric: asymmetric)
    let storage = target.slot.assumingMemoryBound(to: Storage.self)
    let current = storage.pointee.list.load(ordering: .relaxed)
    if _slowPath(unsafeBitCast(current, to: UInt.self) != list) { Multicast(target).reclaim(list) }
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

    @inline(__always) func fence() { Fence.light(asymmetric: isBiased) }
  }

  /// Registers this thread as the first invoker, without the lock. `isClaimValid` says whether
  /// that counts.
  ///
  /// A writer takes the lock, and then reads who has invoked (`invokerNumber`). This thread
  /// registers, and then looks at the lock. Each makes a full fence in between. So a writer that
  /// takes the lock after that look finds this thread. If a writer has the lock, it may have found
  /// none, make its change without a fence, and store the word anew: then this thread registers
  /// under the lock, too. Of a writer that has had the lock, this thread sees everything, also that
  /// the word is another one, or that all multicasts are watched.
  ///
  /// - Returns: whether nobody was registered, and nothing is special.
  @inline(__always)
  private func claim(_ thread: ThreadRecord) -> Bool {
    invokers == 0 && Fence.isAsymmetric
      && fields.invoker.compareExchange(
        expected: handle.rawValue, desired: handle.rawValue &+ UInt64(thread.number),
        ordering: .sequentiallyConsistent  // order: first_invoker
      ).exchanged
  }

  private var isClaimValid: Bool { stripe.isFree && Watch.ofAll == 0 }

  /// The word of the invokers without the handle.
  ///
  /// Read before the list is read again: a writer that found a single invoker has made its change
  /// without a fence, under the lock that `registerInvoker` takes. Acquire: pairs with the release
  /// of `registerInvoker`, by which another thread has let several threads in, this one too; with
  /// that of `observe`; and with that of `endFencing`.
  private var invokers: UInt64 {
    fields.invoker.load(ordering: .acquiring) &- handle.rawValue  // order: invokers
  }

  /// Whether this thread is one of the invokers, and nothing is special.
  @inline(__always)
  private func isInvoker(_ thread: ThreadRecord) -> Bool {
    let invokers = self.invokers
    return invokers >= Self.open || invokers == UInt64(thread.number)
  }

  /// Registers this thread if need be. If the multicast is not biased, says so in the frame, and
  /// makes a full fence.
  ///
  /// The frame is published. It returns the mode of the value that it read last.
  ///
  /// - Returns: nil if the multicast does not exist.
  @inline(__always)
  private func admit(_ thread: ThreadRecord, _ frame: Frame) -> Mode? {
    repeat {
      let word = invokers
      // From the word of another occupant this makes no number of a thread.
      let number = (word >= Self.open ? word &- Self.open : word) & ~Self.special
      //~ invoker_not_registered
      if number == UInt64(thread.number) || number == Self.multipleInvokers {
        let mode = Mode(special: word & Self.special)
        if !mode.isBiased {
          frame.setFenced()
          // Pairs with the full fence of a writer: it sees this frame, or what this reads next are
          // its changes.
          Fence.full()
        }
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
