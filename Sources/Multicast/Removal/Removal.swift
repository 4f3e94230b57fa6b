import MulticastHeader
import MulticastShims

/// A removal of registrations. A removal starts when the slots of the registrations are changed,
/// and ends when the caller receives a status.
///
/// A removal has these phases:
///
/// 1. *Retire.* Under the multicast's stripe lock, the removing thread changes the word in the
///    registration's slot and cancels the registration's queued calls. An invocation that sees the
///    change begins no call.
/// 2. *Heavy fence.* After this fence, every invocation sees the change, and the removing thread
///    sees every hazard that was set before the fence. No fence is needed if this thread is the
///    single invoker. A full fence is enough if the invocations execute full fences (see `Bias`).
/// 3. *Reclaim replaced lists* that no invocation can be reading.
/// 4. *Wait* until no other thread's hazard protects the registration. *Reclaim* the registration,
///    and run its *release* function.
/// 5. *Wait for prior removals*: wait for running calls to equal delegates that were removed
///    earlier. A removal by token or by position skips this phase.
/// 6. Combine the results into one *status*.
///
/// A registration that cannot be in a call is reclaimed and released before phase 2. In a fenced
/// multicast, the removal of a single registration checks for calls under the lock: it executes the
/// full fence of phase 2, and then reads the hazards. If no hazard protects the registration, its
/// slot is returned to the pool in the same critical section.
///
/// `InvocationList.invoke` contains the other side of this protocol. Either an invocation sees the
/// change and does not call the delegate, or phase 4 sees the invocation's hazard. After the call,
/// either phase 4 sees that the hazard has been cleared, or the invocation sees the change and
/// calls `PendingRemovals.callDidReturn`. That function takes the waits' lock. Phase 4 holds this
/// lock while it checks the hazards again and goes to sleep, so no wake-up is lost.
struct Removal {
  /// The changes to the lists, and the thread that makes them.
  var lists = ListChanges(by: .current)

  private var thread: ThreadRecord? { lists.thread }

  /// The multicast that this removal changes; nil if it changes several multicasts.
  private let multicast: Multicast?

  /// The fence that phase 2 needs. No fence is needed if only this thread invokes the multicast. No
  /// fence is needed either if all calls are made by queues, because the hazards of their runs are
  /// visible without a fence.
  private var need = Fence.Need.none

  /// The removed registrations that may be in a call.
  private var retired = RegistrationChain()

  /// The removed registrations that are not in a call but have a pending cleanup.
  private var idle = RegistrationChain()

  /// The payloads of cancelled calls.
  var payloads = ReleasedPayloads()

  private var outcome = Result()

  struct Result {
    /// The number of removed registrations.
    var count = 0

    /// The reason why nothing was removed.
    var failure: Status? = nil

    /// The result of waiting: `ok`, `system`, `pending` or `timeout`. `pending` and `timeout` mean
    /// that a call is still running.
    var waiting = Status.ok

    /// The status for the caller. `system` and `timeout` take precedence, because a call may still
    /// be running (`system`) or is still running (`timeout`). A failure comes next.
    var status: Status {
      waiting == .system || waiting == .timeout ? waiting : failure ?? waiting
    }

    /// The return value of a function that removes many delegates. Such a function does not report
    /// running calls.
    func counted() throws(Status) -> Int {
      if waiting == .system { throw .system }
      if let failure { throw failure }
      return count
    }
  }

  @inline(never)
  init(from multicast: Multicast? = nil) {
    self.multicast = multicast
  }

  // MARK: - 1. Retire

  /// Changes one multicast under its stripe's lock.
  ///
  /// - Parameter body: Unlinks the registrations to remove. If it throws, it has changed nothing.
  mutating func withStripeLock(_ body: (inout Removal) throws(Status) -> Void) {
    let multicast = self.multicast.unsafelyUnwrapped
    do throws(Status) {
      try multicast.withLock { () throws(Status) in
        need = multicast.neededFence(thread)
        try body(&self)
        multicast.compact(&lists)
        multicast.checkInvariants()
      }
    } catch {
      outcome.failure = error
      // Another thread may be destroying the multicast, so its invokers are no longer known.
      if error == .invalidHandle { need = .heavy }
    }
  }

  /// Unlinks every selected delegate, from last to first, so that the release functions run from
  /// first to last. Returns the number of unlinked delegates.
  @_optimize(speed)
  mutating func unlinkAll(_ selection: Selection) -> Int {
    guard let multicast, let list = multicast.list else { return 0 }
    var position = list.count
    while position > 0 {
      position &-= 1
      let entry = list.entry(position)
      if entry.isLive && selection.includes(Registration(entry)) {
        unlink(Registration(entry), from: list, in: multicast)
      }
    }
    return outcome.count
  }

  /// Retires a live registration of a list. The caller holds the stripe's lock.
  @_optimize(speed)
  mutating func unlink(
    _ registration: Registration, from list: InvocationList, in multicast: Multicast,
    isSingle: Bool = false
  ) {
    list.header.live &-= 1  //~ live_not_counted_down
    retire(registration, registration.token, in: multicast, isSingle: isSingle)
    outcome.count &+= 1
  }

  /// Unlinks a single live registration, and releases the stripe's lock. The caller has changed
  /// nothing since it took the lock.
  @inline(never)
  @_optimize(speed)
  mutating func unlink(_ registration: Registration, unlocking stripe: Stripe) {
    let multicast = Multicast(slot: registration.owner)
    let list = multicast.list.unsafelyUnwrapped
    unlink(registration, from: list, in: multicast, isSingle: true)
    multicast.compact(&lists)
    // If there are no details, the release function can run now, because no other step has to come
    // first.
    let isReclaimed = registration.details == nil && idle.pop() != nil
    let cleanup = isReclaimed ? registration.reclaim(to: stripe) : PendingCleanup()
    multicast.checkInvariants()
    stripe.unlock()
    cleanup.run()
  }

  /// Retires a registration that is not included in any list's count of live entries. If no call to
  /// it can be running and it has no pending cleanup, returns its slot to the pool. If no call can
  /// be running but there is a pending cleanup, adds it to `idle`. The caller holds the stripe's
  /// lock.
  ///
  /// - Parameter isSingle: Whether nothing else is removed in this critical section. If there are
  ///   several registrations, the hazards are read once for all of them, without the lock.
  @_optimize(speed)
  mutating func retire(
    _ registration: Registration, _ token: Token, in multicast: Multicast, isSingle: Bool = false
  ) {
    registration.retire()
    let need = multicast.neededFence(thread)
    var mayBeCalled = need != .none || thread?.isCalling(token) ?? false
    if isSingle && need == .full && registration.details == nil && !multicast.isObserved {
      // Pairs with the full fence that a fenced invocation executes after it has set its hazard and
      // before it checks the slot.
      Fence.full()
      mayBeCalled = ThreadRegistry.isCalled(token)  //~ hazards_not_read_under_lock
      // Phase 5 needs this fence even if no call to this registration is running.
      self.need = need
    }
    if let details = registration.details, let queue = details.pointee.queue {
      Queue(slot: queue).cancel(details, &payloads)
      // The thread running the queue need not be an invoker. That thread has set its hazard under
      // the queue's lock or before the ring's head was closed, so the hazard is visible without a
      // fence.
      mayBeCalled = true
    }
    if mayBeCalled {
      if need > self.need { self.need = need }
      return retired.push(registration)
    }
    if registration.hasPendingCleanup {
      idle.push(registration)
    } else {
      registration.putBack(to: multicast.stripe)
    }
  }

  /// Fast path: performs all phases except running the release function. This requires a
  /// registration without details, in a multicast that no invocation is reading. The caller holds
  /// the stripe's lock.
  ///
  /// - Returns: the pending cleanup, which the caller runs after it has released the lock. Nil if
  ///   the fast path is not possible, in which case nothing has changed.
  @inline(__always)
  static func removeAtOnce(
    _ registration: Registration, from multicast: Multicast
  ) -> PendingCleanup? {
    guard registration.details == nil, multicast.firstRetired == nil,
      multicast.isQuiescent(.current), let list = multicast.list
    else { return nil }
    let isLast = list.entry(list.count &- 1).slot == registration.storage
    list.header.live &-= 1
    let cleanup = registration.reclaim(to: multicast.stripe)
    if list.live == 0 { multicast.didRemoveLast() }
    if isLast || list.needsCompaction { multicast.compactAtOnce(list) }
    multicast.checkInvariants()
    return cleanup
  }

  // MARK: - 2 to 6. Fence, reclaim, wait, release, status

  /// Performs phases 2 to 6. No lock is held.
  ///
  /// - Parameters:
  ///   - timeout: How long to wait for calls on other threads.
  ///   - prior: Selects the delegates for phase 5. Nil if the removal skips that phase.
  mutating func complete(
    _ timeout: Timeout = .untilExit, waitingFor prior: Selection? = nil
  ) -> Result {
    if !idle.isEmpty || !retired.isEmpty || lists.retired != nil { complete(timeout) }
    if let prior, outcome.waiting != .system {
      outcome.waiting = outcome.waiting.combined(
        with: waitForPriorRemovals(of: prior, timeout))
    }
    return outcome
  }

  private mutating func complete(_ timeout: Timeout) {
    let process = Fork.generation
    // Do this before waiting, because a running delegate may be waiting for the cancelled calls.
    payloads.cleanUp()  //~ payloads_released_after_waiting
    // If a removal must be reported, either its registration has details, or its multicast counts
    // as having several invokers. So no such removal takes a fast path, and all of them reach this
    // code.
    if Policies.haveToKnow {
      //~ removal_wakes_no_invocation
      if Self.isReplayed(idle) || Self.isReplayed(retired) { Waits.wake() }
      notify()  //~ removal_not_notified
    }
    if process == Fork.generation { idle.reclaimAndRelease() }
    idle = RegistrationChain()
    // If a release function has forked, this is the child, where the registrations have already
    // been deferred.
    if process != Fork.generation { retired = RegistrationChain() }
    if lists.retired != nil || need == .heavy && !retired.isEmpty {
      guard fence() else { return outcome.waiting = .system }
    } else {
      Fence.full()
    }
    if lists.retired != nil { reclaimLists() }
    outcome.waiting = waitForCalls(timeout)
  }

  /// Whether invocations may be waiting for a replay to one of these registrations.
  private static func isReplayed(_ removed: RegistrationChain) -> Bool {
    removed.contains { $0.details?.pointee.isReplayed ?? false }
  }

  private func notify() {
    if let multicast { return Policies.notify(multicast) }
    // The slot may have been reused for another multicast. Notifying the new multicast is harmless,
    // because the notification reports its current state.
    Self.forEachOwner(of: idle) { Policies.notify($0) }
    Self.forEachOwner(of: retired) { Policies.notify($0) }
  }

  private func fence() -> Bool {
    let begin = shims_now_ns()
    guard Fence.heavy() else { return false }
    let end = shims_now_ns()
    if let multicast {
      multicast.didFence(from: begin, to: end)
    } else {
      Self.forEachOwner(of: retired) { $0.didFence(from: begin, to: end) }
    }
    return true
  }

  /// Visits the multicasts of the removed registrations. May visit a multicast several times.
  @inline(never)
  private static func forEachOwner(of removed: RegistrationChain, _ body: (Multicast) -> Void) {
    let process = Fork.generation
    var last: UInt32? = nil
    for registration in removed where registration.owner != last {
      // If `body` has forked, the fork handler takes care of the registrations in the child.
      if process != Fork.generation { return }
      last = registration.owner
      body(Multicast(slot: registration.owner))
    }
  }

  /// Frees the retired lists that no thread is reading.
  private func reclaimLists() {
    if let multicast, let list = lists.retired {
      return multicast.reclaim(UInt(bitPattern: list.address))
    }
    Self.forEachOwner(of: retired) { $0.reclaim() }
  }

  /// Waits for calls to the retired registrations, and then reclaims and releases them.
  private mutating func waitForCalls(_ timeout: Timeout) -> Status {
    if retired.isEmpty { return .ok }
    retired.checkRetired()
    let process = Fork.generation
    // Registrations that are not being called need not wait for those that are.
    finishedCalls().reclaimAndRelease()
    if process != Fork.generation { retired = RegistrationChain() }
    if retired.isEmpty { return .ok }
    return PendingRemovals.complete(retired, timeout)
  }

  /// Extracts the registrations that are not being called.
  private mutating func finishedCalls() -> RegistrationChain {
    if retired.hasOne { return retired.extractUncalled() }
    return retired.extractUncalledOfMany()
  }

  // MARK: - 5. Wait for prior removals

  /// Waits for running calls to selected delegates that were removed earlier. The thread that
  /// removed them either did not wait for these calls or is still waiting.
  private func waitForPriorRemovals(
    of selection: Selection, _ timeout: Timeout
  ) -> Status {
    let multicast = self.multicast.unsafelyUnwrapped
    // Usually there is no such delegate, and this check costs less than a fence.
    let isInside = thread?.isInside ?? false
    let mayBeCalled = (isInside || need != .none) && multicast.hasRetired(selection)
    guard mayBeCalled || Queue.isInUse else { return .ok }
    return waitForPriorRemovals(
      .selected(selection, of: multicast, mayBeCalled: mayBeCalled), timeout,
      needsFence: mayBeCalled && multicast.needsHeavyFence(thread))
  }

  /// Waits for running calls to delegates that were removed earlier.
  ///
  /// - Returns: `pending` if this thread is in such a call or if waiting would close a cycle,
  ///   otherwise `ok`, `timeout` or `system`.
  func waitForPriorRemovals(
    _ prior: PriorCalls, _ timeout: Timeout, needsFence: Bool = true
  ) -> Status {
    PendingRemovals.waitLate { waitForPriorRemovalsLate(prior, timeout, needsFence) }
  }

  private func waitForPriorRemovalsLate(
    _ prior: PriorCalls, _ timeout: Timeout, _ needsFence: Bool
  ) -> Status {
    // The thread that removed the delegates may not have executed its heavy fence yet. In addition,
    // `waitLate` requires a fence that begins after this thread has been counted.
    if needsFence { guard fence() else { return .system } } else { Fence.full() }
    var waiting = Status.ok
    for record in ThreadRegistry.all {  //~ no_wait_for_prior_removals
      let isOwn = record == ThreadRecord.current
      record.forEachFrame { target, token in
        guard !token.isNone && prior.contains(target, token) else { return }
        let status = isOwn ? .pending : PendingRemovals.wait(for: token, timeout)
        if status != .ok { waiting = status }
      }
    }
    return waiting
  }
}
