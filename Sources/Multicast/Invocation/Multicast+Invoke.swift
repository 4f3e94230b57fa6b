import MulticastHeader
import MulticastShims
import Synchronization

extension Multicast {
  /// Calls every live delegate in order, on this thread.
  ///
  /// This function takes no lock, allocates nothing and executes no atomic read-modify-write. If
  /// the kernel supports expedited membarrier and the multicast is not fenced, it executes no fence
  /// instruction either.
  ///
  /// - Returns: the number of called delegates, or a negative status code.
  @inline(__always)
  func invoke<C: Call>(_ call: C) -> Int64 {
    guard let list = loadList() else { return invokeEmpty(call) }
    return invoke(call, reading: list)
  }

  /// - Parameter list: The current list, which no frame of this thread names yet.
  @inline(__always)
  func invoke<C: Call>(_ call: C, reading list: InvocationList.Address) -> Int64 {
    guard let thread = ThreadRecord.current else { return enterAndInvoke(call) }
    guard let frame = enter(thread, list) else { return invokeWithoutFrame(call) }
    // Read the invoker word after publishing the list and before reading the list again. Until this
    // thread is registered, a writer may find a single invoker and free lists without a fence.
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
    // Get the record again, because the loop has no register left for it.
    Self.leave(frame, of: ThreadRecord.currentAgain, asymmetric: true)
    return called
  }

  /// Like `invoke`, but not inlined, for callers that can afford one more function call.
  @_optimize(speed)
  func invokeOutlined(_ invocation: Invocation) -> Int64 { invoke(invocation) }

  // The unusual cases are not inlined, so that the loop can use all registers.

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

  /// Invokes a multicast to which no delegate has ever been added. Needs no frame, because it reads
  /// nothing that could be freed.
  @inline(__always)
  func invokeEmpty<C: Call>(_ call: C) -> Int64 {
    guard let thread = ThreadRecord.current, thread.hasRoom, isInvoker(thread) else {
      return enterAndInvoke(call)
    }
    return isCurrentAfterList ? 0 : Status.invalidHandle.count
  }

  /// Handles an invocation that is nested too deeply to get a frame. If the multicast has policies,
  /// the invocation may still be deferred, because a deferred invocation needs no frame.
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

  /// Checks the special bits, and registers this thread if necessary.
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
    // A visit ignores the policies, except that the invocations deferred during the visit are made
    // at its end.
    let count = withList(thread, frame, mode) { list in
      list.visit(visit, orUndo: nil, in: frame, mode)
    }
    invokeDeferred(on: thread)
    return count
  }

  /// Calls `body` with the list, which a frame protects from being freed. Ignores policies.
  ///
  /// - Returns: the result of `body`, or a negative status code.
  @inline(__always)
  func withList(
    on thread: ThreadRecord, _ body: (_ list: InvocationList, Frame, Mode) -> Int64
  ) -> Int64 {
    guard let frame = enter(thread, loadList()) else { return Status.limit.count }
    guard let mode = admit(thread, frame) else { return Self.refuse(thread, frame) }
    return withList(thread, frame, mode) { list in body(list, frame, mode) }
  }

  /// Calls `body` with the list, unless there is no list because no delegate has ever been added.
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

  /// Reads the current list. Acquire: pairs with the release in `setList`.
  @inline(__always)
  func loadList() -> InvocationList.Address? {
    fields.list.load(ordering: .acquiring)  // order: next_occupant
  }

  /// Whether the list that has just been read belongs to this multicast. If the handle were
  /// compared before the list is read, the list could belong to a later multicast in the slot.
  @inline(__always)
  private var isCurrentAfterList: Bool { fields.header.id.load(ordering: .relaxed) == handle }

  /// Publishes a frame with the list that the invocation will read. Returns nil if invocations are
  /// nested too deeply.
  @inline(__always)
  private func enter(_ thread: ThreadRecord, _ list: InvocationList.Address?) -> Frame? {
    guard let frame = thread.push() else { return nil }
    frame.publish(target, reading: UInt(bitPattern: list))
    // Pairs with a writer's heavy fence: either the writer sees this frame, or the reads below see
    // the writer's changes. If the writers execute no heavy fence, `admit` executes a full fence.
    Fence.light(asymmetric: true)
    return frame
  }

  /// Returns the current list, and makes the frame name it. The caller has published the frame and
  /// then executed the fence required by `mode`.
  private func protectedList(_ frame: Frame, _ mode: Mode) -> InvocationList.Address? {
    var list = loadList()
    while UInt(bitPattern: list) != frame.list {
      let last = frame.list
      frame.publish(reading: UInt(bitPattern: list))
      mode.fence()
      reclaim(last)  // a writer may have kept the last list because of this frame
      list = loadList()
    }
    return list
  }

  /// Ends an invocation of a multicast that no longer exists. Executes a full fence, because the
  /// slot may have been reused for a fenced multicast.
  private static func refuse(_ thread: ThreadRecord, _ frame: Frame) -> Int64 {
    leave(frame, of: thread, asymmetric: false)
    return Status.invalidHandle.count
  }

  /// Reads the target and the list from the frame, because the loop has no register left for them.
  @inline(__always)
  private static func leave(_ frame: Frame, of thread: ThreadRecord, asymmetric: Bool) {
    let (target, list) = (frame.target, frame.list)
    thread.pop(frame)
    // Pairs with the fence of a writer that has replaced the list: either the writer sees that this
    // frame has been withdrawn, or this thread sees that the list has been replaced, and frees the
    // old list.
    Fence.light(asymmetric: asymmetric)
    let storage = target.slot.assumingMemoryBound(to: Storage.self)
    let current = storage.pointee.list.load(ordering: .relaxed)
    if _slowPath(unsafeBitCast(current, to: UInt.self) != list) { Multicast(target).reclaim(list) }
  }

  // MARK: - Invokers

  /// The multicast's special bits, as an invocation has read them.
  struct Mode {
    static var plain: Mode { Mode(special: 0) }

    fileprivate let special: UInt64

    /// Whether light fences are enough.
    var isBiased: Bool { special & (fenced | watched) == 0 }
    var isWatched: Bool { special & watched != 0 }
    var hasPolicies: Bool { special & withPolicies != 0 }

    @inline(__always) func fence() { Fence.light(asymmetric: isBiased) }
  }

  /// Registers this thread as the first invoker, without the lock. Afterwards, `isClaimValid` says
  /// whether the registration is valid.
  ///
  /// A writer takes the lock, and then reads which threads have invoked the multicast
  /// (`invokerNumber`). This thread registers, and then checks the lock (`isClaimValid`). Each of
  /// the two executes a full fence between its two steps. There are three cases:
  ///
  /// 1. The writer takes the lock after the check. It then finds this thread.
  /// 2. The writer holds the lock during the check. It may have found no invoker, made its change
  ///    without a fence, and overwritten the word. Therefore this thread registers again, under the
  ///    lock.
  /// 3. The writer has released the lock before the check. This thread then sees everything that
  ///    the writer did, including a changed word and the flag for watching all multicasts.
  ///
  /// - Returns: false if another thread had already been registered, if a special bit was set, or
  ///   if there is no membarrier.
  @inline(__always)
  private func claim(_ thread: ThreadRecord) -> Bool {
    invokers == 0 && Fence.isAsymmetric
      && fields.invoker.compareExchange(
        expected: handle.rawValue, desired: handle.rawValue &+ UInt64(thread.number),
        ordering: .sequentiallyConsistent  // order: first_invoker
      ).exchanged
  }

  private var isClaimValid: Bool { stripe.isFree && Watch.ofAll == 0 }

  /// The invoker word minus the handle.
  ///
  /// The word must be read before the list is read again: a writer that has found a single invoker
  /// has made its change without a fence, under the lock that `registerInvoker` takes. Acquire:
  /// pairs with the releases in `observe` and `endFencing`, and with the release in
  /// `registerInvoker` by which another thread opens this multicast to several threads.
  private var invokers: UInt64 {
    fields.invoker.load(ordering: .acquiring) &- handle.rawValue  // order: invokers
  }

  /// Whether this thread is an invoker and no special bit is set.
  @inline(__always)
  private func isInvoker(_ thread: ThreadRecord) -> Bool {
    let invokers = self.invokers
    return invokers >= Self.open || invokers == UInt64(thread.number)
  }

  /// Registers this thread if necessary. Unless the multicast is biased, tags the frame as fenced
  /// and executes a full fence.
  ///
  /// The caller has already published the frame. The returned mode reflects the last value read
  /// from the invoker word.
  ///
  /// - Returns: nil if the multicast does not exist.
  @inline(__always)
  private func admit(_ thread: ThreadRecord, _ frame: Frame) -> Mode? {
    repeat {
      let word = invokers
      // If the word belongs to another multicast in this slot, `number` matches no thread.
      let number = (word >= Self.open ? word &- Self.open : word) & ~Self.special
      //~ invoker_not_registered
      if number == UInt64(thread.number) || number == Self.multipleInvokers {
        let mode = Mode(special: word & Self.special)
        if !mode.isBiased {
          frame.setFenced()
          // Pairs with a writer's full fence: either the writer sees this frame, or the following
          // reads see the writer's changes.
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

  /// The caller holds the stripe's lock.
  private func addInvoker(_ own: UInt64) {
    let special = invokerNumber & Self.special
    let known = invokerNumber & ~(special | Self.open)
    let number = known == 0 || known == own ? own : Self.multipleInvokers
    // Without membarrier, every multicast is permanently fenced.
    let fenced = Fence.isAsymmetric ? 0 : Self.fenced
    invokerNumber = number | special | fenced | Watch.ofAll
    checkInvariants()
  }
}

extension InvocationList {
  /// The loop of a biased invocation. If it finds a delegate that is not plain, `Walk` continues
  /// the invocation at this delegate. No other code of the library runs as often as this loop.
  ///
  /// Each call follows the hazard protocol. The invocation sets its hazard, executes a light fence,
  /// and then checks the slot. After the call, it clears the hazard, executes another light fence,
  /// and checks the slot again. The other side is in `Removal`, which changes the slot, executes a
  /// heavy fence, and then checks the hazards (see `Fence`). So at least one of the two sides sees
  /// the other's store, both before and after the call.
  ///
  /// - Parameter frame: A frame that names this list, so that the list is not freed.
  /// - Returns: the number of called delegates.
  @inline(__always)
  func invoke<C: Call>(_ call: C, in frame: Frame) -> Int64 {
    var entry = address
    let end = self.end
    var progress = Progress.goesOn
    while entry != end {
      progress = Self.callPlain(call, entry, in: frame)
      if progress != .goesOn { break }
      entry += 1
      if entry == end { break }
      // Call two delegates per iteration, because the backward jump is a considerable part of a
      // call's cost.
      progress = Self.callPlain(call, entry, in: frame)
      if progress != .goesOn { break }
      entry = shims_keep(entry + 1).unsafelyUnwrapped.assumingMemoryBound(to: Entry.self)
    }
    switch progress {
    case .goesOn: return Self.number(of: entry, in: frame)
    case .stops: return Self.number(of: entry, in: frame) &+ 1
    case .isSpecial: return Self.invokeRest(from: entry, to: end, in: frame, call)
    }
  }

  /// The address after the last entry. Acquire: pairs with the release in `publish`. The invocation
  /// does not call delegates added later.
  var end: Address {
    let count = Int(header.count.load(ordering: .acquiring))  // order: entries
    return shims_keep(address + count).unsafelyUnwrapped.assumingMemoryBound(to: Entry.self)
  }

  /// The number of entries before the given entry. Reads the address of the list from the frame,
  /// because the loop has no register left for it.
  private static func number(of entry: Address, in frame: Frame) -> Int64 {
    let distance = UInt(bitPattern: entry) &- frame.list
    return Int64(truncatingIfNeeded: distance / UInt(MemoryLayout<Entry>.stride))
  }

  private enum Progress { case goesOn, stops, isSpecial }

  @inline(__always)
  private static func callPlain<C: Call>(
    _ call: C, _ entry: Address, in frame: Frame
  ) -> Progress {
    frame.setHazard(entry.pointee.token)  //~ no_hazard_of_call
    Fence.light(asymmetric: true)
    guard _fastPath(entry.pointee.isPlain) else { return .isSpecial }  //~ no_look_after_hazard
    let slot = entry.pointee.slot
    let goesOn = call(slot.pointee.function.unsafelyUnwrapped, slot.pointee.context)
    frame.clearHazard()
    Fence.light(asymmetric: true)
    if _slowPath(!entry.pointee.isPlain) { didReturn(entry.pointee) }  //~ no_look_after_call
    return goesOn ? .goesOn : .stops
  }

  /// Called after the call to a delegate that has been removed or paused in the meantime.
  @inline(never)
  private static func didReturn(_ entry: Entry) {
    if !entry.isLive { PendingRemovals.hazardDidEnd(entry) }
  }

  private static func invokeRest<C: Call>(
    from first: Address, to end: Address, in frame: Frame, _ call: C
  ) -> Int64 {
    AnyCall.with(call) { invokeRest(from: first, to: end, in: frame, $0) }
  }

  /// Continues with a delegate that is not plain and whose hazard has already been set.
  ///
  /// - Returns: the number of called delegates, including those before the first entry.
  @inline(never)
  private static func invokeRest(
    from first: Address, to end: Address, in frame: Frame, _ call: AnyCall
  ) -> Int64 {
    var walk = Walk(in: frame, .plain, after: first.pointee)
    let before = number(of: first, in: frame)
    return before &+ walk.run(call, from: first, to: end)
  }

  /// Calls every delegate, and returns the number of called delegates.
  func invoke(_ call: AnyCall, in frame: Frame, _ mode: Multicast.Mode) -> Int64 {
    var walk = Walk(in: frame, mode)
    if !mode.isWatched { return walk.run(call, from: address, to: end) }
    // Read the handle now, because the multicast may be destroyed during the calls.
    let multicast = Multicast(frame.target).handle.rawValue
    let invocation = call.invocation
    shims_probe_invoke_begin(
      multicast, UInt64(invocation.event), invocation.payload, invocation.size)
    let called = walk.run(call, from: address, to: end)
    shims_probe_invoke_end(multicast, UInt64(invocation.event), called)
    return called
  }
}
