import MulticastHeader
import MulticastShims

/// The slow path of all operations that iterate over delegates: fenced or watched invocations,
/// invocations that have found a delegate that is not plain, visits and their undoing,
/// enumerations, replays, and calls to a single delegate.
///
/// The hazard protocol is the same as in `InvocationList.invoke`, with one difference: the next
/// delegate's hazard replaces the previous delegate's hazard, and the previous delegate's slot is
/// checked afterwards. So a fenced invocation executes only one full fence per delegate.
struct Walk {
  let frame: Frame
  private let mode: Multicast.Mode
  /// The delegate protected by the hazard. Its slot must be checked once the hazard has been
  /// cleared.
  private var last: InvocationList.Entry?
  /// The functions that lock the multicast's contexts, read when the first delegate needs them. All
  /// delegates of a walk belong to the same multicast.
  private var shared: ContextLock? = nil

  init(in frame: Frame, _ mode: Multicast.Mode, after last: InvocationList.Entry? = nil) {
    self.frame = frame
    self.mode = mode
    self.last = last
  }

  /// The outcome for one delegate.
  struct Outcome {
    /// Whether the delegate has been called, queued, or passed to a visitor or enumerator.
    var isCalled = false
    var goesOn = true
  }

  /// Processes a range of entries in order, and returns the number of called delegates.
  @_optimize(speed)
  mutating func run(
    _ call: AnyCall, from first: InvocationList.Address, to end: InvocationList.Address
  ) -> Int64 {
    var called: Int64 = 0
    var entry = first
    var outcome = Outcome()
    if !mode.isBiased && call.isSimple && !mode.isWatched {
      called = runFenced(call, from: first, to: end)
      entry = end
    }
    while outcome.goesOn && entry != end {
      outcome = step(call, entry.pointee)
      if outcome.isCalled { called &+= 1 }
      entry += 1
    }
    finish(call)
    return called
  }

  /// The fast path of a fenced invocation without options. It assumes that most delegates are
  /// plain.
  @_optimize(speed)
  @inline(never)
  private mutating func runFenced(
    _ call: AnyCall, from first: InvocationList.Address, to end: InvocationList.Address
  ) -> Int64 {
    var called: Int64 = 0
    var entry = first
    let invocation = call.invocation
    while entry != end {
      let next = entry + 1
      // If the next entry has the same slot, this entry is dead. A writer that repeatedly adds and
      // removes one delegate leaves behind many such entries. Do not read their slot: each read
      // would be slow, because the writer keeps writing to the slot.
      if next == end || next.pointee.slot != entry.pointee.slot {
        if callPlain(invocation, entry.pointee) || step(call, entry.pointee).isCalled {
          called &+= 1
        }
      }
      entry = next
    }
    return called
  }

  /// Calls a plain delegate. Returns false if the delegate is not plain.
  @inline(__always)
  private mutating func callPlain(
    _ invocation: Invocation, _ entry: InvocationList.Entry
  ) -> Bool {
    guard entry.isPlain else { return false }
    moveHazard(to: entry)
    guard entry.isPlain else { return false }  //~ no_look_after_plain_hazard
    _ = invocation(entry.slot.pointee.function.unsafelyUnwrapped, entry.slot.pointee.context)
    return true
  }

  /// Ends the walk, and releases the queued calls' payload (see `AnyCall.ownsPayload`).
  @inline(__always)
  mutating func finish(_ call: AnyCall) {
    endProtection()
    if _slowPath(frame.payload != 0) && call.ownsPayload { Payload.release(of: frame) }
  }

  /// Calls one delegate, if the call applies to it.
  @_optimize(speed)
  @inline(never)
  mutating func step(_ call: AnyCall, _ entry: InvocationList.Entry) -> Outcome {
    var outcome = Outcome()
    let registration = Registration(entry)
    // Check without the hazard first, so that a registration removed long ago costs no more than
    // this check.
    guard entry.isLive, call.mayConcern(registration) else { return outcome }
    let watched = mode.isWatched ? Watch.target(of: entry.token) : .none
    moveHazard(to: entry)
    // If the entry is still live, the registration is not reclaimed before the next step.
    guard entry.isLive else { return outcome }
    let details = registration.details
    if let details, !call.wants(details) { return outcome }
    if call.isInvocation, let details, let slot = details.pointee.queue {
      if mode.isWatched {
        details.pointee.setWatched()
        RaceDetector.happensBefore(details)
      }
      // Clear the hazard first. The call to `enqueue` may wait for room in the queue, and no
      // removal should have to wait for this thread during that time.
      endProtection()
      let result = call.enqueue(registration, entry.token, to: Queue(slot: slot), frame)
      if mode.isWatched {
        Watch.didAppend(
          entry.token, call.invocation.event, to: Queue(slot: slot), result)
      }
      outcome.isCalled = result == .queued
      return outcome
    }
    let isWatched = mode.isWatched && call.enumeration == nil
    let functions = locks(of: registration, details)
    let result = registration.callProtected(
      entry.token, functions, isOnce: call.isInvocationOrVisit
    ) { (context, isLocked) in
      if !isWatched {
        outcome.goesOn = call(registration, entry.token, context, isLocked: isLocked)
        return
      }
      RaceDetector.willCall(registration.storage)
      outcome.goesOn = Watch.watching(
        registration, entry.token, of: watched, call.invocation.event, context
      ) {
        call(registration, entry.token, context, isLocked: isLocked)
      }
      RaceDetector.didCall(registration.storage)
    }
    if result == .ended { call.enumeration?.pointee.removed &+= 1 }
    outcome.isCalled = result == .called
    return outcome
  }

  @inline(__always)
  private mutating func locks(
    of registration: Registration, _ details: RegistrationDetails.Address?
  ) -> ContextLock {
    if !registration.has(Registration.Flags.shared) {
      return ContextLock(lock: details?.pointee.lock, unlock: details?.pointee.unlock)
    }
    if shared == nil { shared = ContextLock(registration) }
    return shared.unsafelyUnwrapped
  }

  // MARK: - The hazard

  /// Replaces the previous delegate's hazard with the next delegate's hazard. The caller then
  /// checks the next delegate's slot. If the delegate is live, it is not reclaimed before the next
  /// step.
  @inline(__always)
  private mutating func moveHazard(to entry: InvocationList.Entry) {
    frame.setHazard(entry.token)  //~ no_hazard_in_walk
    mode.fence()
    //~ no_look_after_fenced_call
    if let last, _slowPath(!last.isLive) { didReturn(last, before: entry) }
    last = entry
  }

  /// Called if the previous delegate has been removed. The hazard already names the next delegate,
  /// which is not being called yet. Clears the hazard in the meantime, so that no removal
  /// waits for it.
  @inline(never)
  private func didReturn(_ last: InvocationList.Entry, before next: InvocationList.Entry) {
    frame.clearHazard()
    PendingRemovals.hazardDidEnd(last)
    frame.setHazard(next.token)
    Fence.full()
  }

  /// Clears the hazard, and checks whether a removal may have seen it and may now be waiting.
  @inline(__always)
  mutating func endProtection() {
    guard let last else { return }
    self.last = nil
    frame.clearHazard()
    mode.fence()
    if _slowPath(!last.isLive) { PendingRemovals.hazardDidEnd(last) }  //~ no_look_after_walk
  }
}

extension Registration {
  /// Calls one delegate by its token, as an invocation of its multicast would.
  ///
  /// - Returns: 1 if the delegate was called or its call was queued, 0 if not, or a negative status
  ///   code.
  static func invoke(_ token: Token, _ call: AnyCall) -> Int64 {
    guard let registration = Registration(slotOf: token), registration.id.isLive(as: token) else {
      return Status.invalidHandle.count
    }
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      return Status.outOfMemory.count
    }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    // The slot may be reused until the hazard is set. If the token is still valid then, this is the
    // registration's multicast.
    let multicast = Multicast(slot: registration.owner)
    guard multicast.handle.isOfMulticast else { return Status.invalidHandle.count }
    // Only the library calls a transport's delegate.
    if multicast.handle.kind == .transport || call.isInvocation && multicast.isVisitOnly {
      return Status.state.count
    }
    let entry = InvocationList.Entry(slot: registration.storage, token: token)
    var isLive = false
    let count = multicast.withList(on: thread) { _, frame, mode in
      isLive = entry.isLive
      var walk = Walk(in: frame, mode)
      let outcome = walk.step(call, entry)
      walk.finish(call)
      return outcome.isCalled ? 1 : 0
    }
    multicast.invokeDeferred(on: thread)
    return isLive || count == Status.limit.count ? count : Status.invalidHandle.count
  }
}
