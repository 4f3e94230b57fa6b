import MulticastHeader
import MulticastShims

/// The removal of registrations, from the change in the slot to the status that the caller gets.
///
/// A removal has these phases:
///
/// 1. *Retire.* Under the lock of the multicast's stripe, the word in the registration's slot is
///    changed, and its queued calls are cancelled. No call begins in an invocation that sees that.
/// 2. *Heavy fence.* Every invocation sees the change from here on, and this thread sees every
///    hazard that was set before. If this thread is the single invoker, no fence is needed. If
///    invocations make full fences, a full fence is enough: see `Bias`.
/// 3. *Reclaim lists* that were replaced, as far as no invocation may be reading them.
/// 4. *Wait* until no other thread's hazard protects the registration. *Reclaim* the registration,
///    and run its *release* function.
/// 5. *Wait for prior removals*: for running calls of equal delegates that were removed before. A
///    removal by token or by position leaves this out.
/// 6. One *status*.
///
/// A registration that cannot be in a call is reclaimed and released before phase 2. So is a single
/// one of a fenced multicast: phase 2 is a full fence there, and is made under the lock, with a
/// look at the hazards. If no hazard protects it, its slot goes back under the same hold of the
/// lock.
///
/// `InvocationList.invoke` has the other side. Either an invocation sees the change and does not
/// call, or phase 4 sees its hazard. After the call, either phase 4 sees that the hazard is gone,
/// or the invocation sees the change and comes to `PendingRemovals.callDidReturn`. The waits' lock
/// orders the two then.
struct Removal {
  /// The changes to the lists, and the thread that makes them.
  var lists = ListChanges(by: .current)

  private var thread: ThreadRecord? { lists.thread }

  /// The multicast that is changed; nil if there are several.
  private let multicast: Multicast?

  /// None if only this thread invokes. The hazards of queue runs are visible without a fence.
  private var need = Fence.Need.none

  /// Removed, and perhaps being called.
  private var retired = RegistrationChain()

  /// Removed, and in no call. Their details are to be freed, or their release functions are to run.
  private var idle = RegistrationChain()

  /// The payloads of cancelled calls.
  var payloads = ReleasedPayloads()

  private var outcome = Result()

  /// The result of a removal.
  struct Result {
    /// How many registrations were removed.
    var count = 0

    /// Why nothing was removed.
    var failure: Status? = nil

    /// The result of waiting: `ok`; `pending` or `timeout`, if a call still runs; or `system`.
    var waiting = Status.ok

    /// One status. `system` and `timeout` are first: it is unknown whether a call still runs, or
    /// one does. A failure is second.
    var status: Status {
      waiting == .system || waiting == .timeout ? waiting : failure ?? waiting
    }

    /// The result of a removal of many, which does not report that calls still run.
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
  /// - Parameter body: Unlinks what is to be removed; or throws, and has changed nothing.
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
      // Another thread may be destroying the multicast. Its invokers are not known any more.
      if error == .invalidHandle { need = .heavy }
    }
  }

  /// Unlinks every selected delegate, from the last: their release functions then run from the
  /// first.
  ///
  /// - Returns: how many there were.
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

  /// Retires a live registration of a list. The stripe's lock is held.
  @_optimize(speed)
  mutating func unlink(
    _ registration: Registration, from list: InvocationList, in multicast: Multicast,
    isSingle: Bool = false
  ) {
    list.header.live &-= 1  //~ live_not_counted_down
    retire(registration, registration.token, in: multicast, isSingle: isSingle)
    outcome.count &+= 1
  }

  /// Unlinks one live registration, which is all that changes under this hold of its stripe's lock,
  /// and releases the lock.
  @inline(never)
  @_optimize(speed)
  mutating func unlink(_ registration: Registration, unlocking stripe: Stripe) {
    let multicast = Multicast(slot: registration.owner)
    let list = multicast.list.unsafelyUnwrapped
    unlink(registration, from: list, in: multicast, isSingle: true)
    multicast.compact(&lists)
    // Nothing is to be done before its release function.
    let isReclaimed = registration.details == nil && idle.pop() != nil
    let cleanup = isReclaimed ? registration.reclaim(to: stripe) : PendingCleanup()
    multicast.checkInvariants()
    stripe.unlock()
    cleanup.run()
  }

  /// Retires a registration that is in no list. If no call of it can be running, it is reclaimed at
  /// once. The stripe's lock is held.
  ///
  /// - Parameter isSingle: Whether nothing else is removed under this hold of the lock. For many,
  ///   the hazards are read once, without the lock.
  @_optimize(speed)
  mutating func retire(
    _ registration: Registration, _ token: Token, in multicast: Multicast, isSingle: Bool = false
  ) {
    registration.retire()
    let need = multicast.neededFence(thread)
    var mayBeCalled = need != .none || thread?.isCalling(token) ?? false
    if isSingle && need == .full && registration.details == nil && !multicast.isObserved {
      // Pairs with the full fence of a fenced invocation between its hazard and its look at the
      // slot.
      Fence.full()
      mayBeCalled = ThreadRegistry.isCalled(token)  //~ hazards_not_read_under_lock
      // For the removals before this one.
      self.need = need
    }
    if let details = registration.details, let queue = details.pointee.queue {
      Queue(slot: queue).cancel(details, &payloads)
      // The thread that runs the queue is not registered as an invoker. Its hazard was set under
      // the queue's lock, so it is visible without a fence.
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

  /// All phases except the release function: the fast path for a registration without details, in a
  /// multicast that no invocation is reading. The stripe's lock is held.
  ///
  /// - Returns: the pending cleanup, to be run without the lock. Nil if there is more to do: then
  ///   nothing has changed.
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

  /// Completes the removal. No lock is held.
  ///
  /// - Parameters:
  ///   - timeout: How long to wait for calls on other threads.
  ///   - prior: Delegates that may have been removed before. It waits for their calls, too.
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
    // Before the wait: the delegate of a running call may wait for cancelled calls.
    payloads.cleanUp()  //~ payloads_released_after_waiting
    // Observed registrations have details or several invokers, so their removals come here.
    if Policies.haveToKnow {
      //~ removal_wakes_no_invocation
      if Self.isReplayed(idle) || Self.isReplayed(retired) { Waits.wake() }
      notify()  //~ removal_not_notified
    }
    if process == Fork.generation { idle.reclaimAndRelease() }
    idle = RegistrationChain()
    // In the child of a fork that a release function made: the fork has deferred what is left.
    if process != Fork.generation { retired = RegistrationChain() }
    if lists.retired != nil || need == .heavy && !retired.isEmpty {
      guard fence() else { return outcome.waiting = .system }
    } else {
      Fence.full()
    }
    if lists.retired != nil { reclaimLists() }
    outcome.waiting = waitForCalls(timeout)
  }

  /// Whether invocations may wait for a replay to one of these.
  private static func isReplayed(_ removed: RegistrationChain) -> Bool {
    removed.contains { $0.details?.pointee.isReplayed ?? false }
  }

  /// Notifies of the change.
  private func notify() {
    if let multicast { return Policies.notify(multicast) }
    // The slot may hold another multicast by now. Notifying that one is harmless: it gets its own
    // current state.
    Self.forEachOwner(of: idle) { Policies.notify($0) }
    Self.forEachOwner(of: retired) { Policies.notify($0) }
  }

  /// Makes a heavy fence.
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

  /// Visits the multicasts from which these were removed; one perhaps several times.
  @inline(never)
  private static func forEachOwner(of removed: RegistrationChain, _ body: (Multicast) -> Void) {
    let process = Fork.generation
    var last: UInt32? = nil
    for registration in removed where registration.owner != last {
      // In the child of a fork that the body made: the fork has released them, or will.
      if process != Fork.generation { return }
      last = registration.owner
      body(Multicast(slot: registration.owner))
    }
  }

  /// Frees the lists that were retired, as far as no thread reads them.
  private func reclaimLists() {
    if let multicast, let list = lists.retired {
      return multicast.reclaim(UInt(bitPattern: list.address))
    }
    Self.forEachOwner(of: retired) { $0.reclaim() }
  }

  /// Waits for calls of what this removal has retired, and reclaims and releases it.
  private mutating func waitForCalls(_ timeout: Timeout) -> Status {
    if retired.isEmpty { return .ok }
    retired.checkRetired()
    let process = Fork.generation
    // A registration that is not being called does not wait for one that is.
    finishedCalls().reclaimAndRelease()
    if process != Fork.generation { retired = RegistrationChain() }
    if retired.isEmpty { return .ok }
    return PendingRemovals.complete(retired, timeout)
  }

  /// Takes out what is not being called.
  private mutating func finishedCalls() -> RegistrationChain {
    if retired.hasOne { return retired.extractUncalled() }
    return retired.extractUncalledOfMany()
  }

  // MARK: - 5. Wait for prior removals

  /// Waits for running calls of selected delegates that were removed before, by a thread that did
  /// not wait or is still waiting.
  private func waitForPriorRemovals(
    of selection: Selection, _ timeout: Timeout
  ) -> Status {
    let multicast = self.multicast.unsafelyUnwrapped
    // Most often there is no such delegate, and to find that out costs less than a fence.
    let isInside = thread?.isInside ?? false
    let mayBeCalled = (isInside || need != .none) && multicast.hasRetired(selection)
    guard mayBeCalled || Queue.isInUse else { return .ok }
    return waitForPriorRemovals(
      .selected(selection, of: multicast, mayBeCalled: mayBeCalled), timeout,
      needsFence: mayBeCalled && multicast.needsHeavyFence(thread))
  }

  /// Waits for running calls of delegates that were removed before.
  ///
  /// - Returns: `ok`; `pending`, if this thread is in such a call or waiting would close a cycle;
  ///   `timeout`; or `system`.
  func waitForPriorRemovals(
    _ prior: PriorCalls, _ timeout: Timeout, needsFence: Bool = true
  ) -> Status {
    PendingRemovals.waitLate { waitForPriorRemovalsLate(prior, timeout, needsFence) }
  }

  private func waitForPriorRemovalsLate(
    _ prior: PriorCalls, _ timeout: Timeout, _ needsFence: Bool
  ) -> Status {
    // The thread that removed them may not have made its heavy fence yet; and `waitLate` needs one
    // that begins after it was called.
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
