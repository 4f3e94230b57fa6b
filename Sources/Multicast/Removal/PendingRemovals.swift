import MulticastShims
import Synchronization

/// Removals that are not complete because calls still run.
///
/// A thread may wait for those calls. If it does not, the removal is deferred: the thread whose
/// call is the last to return completes it.
enum PendingRemovals {
  // Guarded by the waits' lock.
  nonisolated(unsafe) private static var deferred = RegistrationChain()
  nonisolated(unsafe) private static var firstWaiter: UnsafeMutablePointer<Waiter>? = nil

  /// Registrations that a thread waits to reclaim, on its stack. In the child of a fork it is
  /// empty.
  private struct Waiter: Linked {
    var retired: RegistrationChain
    var next: UnsafeMutablePointer<Waiter>?
  }

  // MARK: - The removing thread

  /// Completes the removal of registrations that are being called: waits for each, or defers it.
  /// Called after the heavy fence.
  ///
  /// - Returns: `ok`; `pending` or `timeout` if one was deferred.
  static func complete(_ retired: RegistrationChain, _ timeout: Timeout) -> Status {
    var status = Status.ok
    var stallDetection = StallDetection(for: retired.first?.token ?? .none)
    var own = Waiter(retired: retired, next: nil)
    withUnsafeMutablePointer(to: &own) { own in
      Lock.waits.lock()
      own.pointee.next = firstWaiter
      firstWaiter = own
      var search = Waits.SearchNeeded.begins
      while true {
        let finished = own.pointee.retired.extractUncalled()
        if !finished.isEmpty {
          Lock.waits.unlock()  //~ locks_out_of_order
          finished.reclaimAndRelease()
          Lock.waits.lock()
          search = .begins
          continue
        }
        guard let registration = own.pointee.retired.first else { break }
        let token = registration.token
        let wait = own.pointee.retired.hasOne ? Wait.calls(token) : .callsOfSeveral(token)
        if let refusal = reasonNotToWait(wait, timeout, search) {
          // The hazard was seen under this lock. The thread that clears it takes the lock later.
          _ = own.pointee.retired.pop()
          deferred.push(registration)
          checkInvariants()
          status = refusal
          search = .begins
        } else {
          search = sleep(for: wait, token, timeout, &stallDetection, search)
        }
      }
      own.unlink(from: &firstWaiter)
      Lock.waits.unlock()
    }
    return status
  }

  /// Waits until no thread calls a delegate that another thread has removed.
  ///
  /// - Returns: `ok`, or why it did not wait.
  static func wait(for token: Token, _ timeout: Timeout) -> Status {
    // Usual for a token that is stale for long.
    if !ThreadRegistry.isCalled(token) { return .ok }
    var stallDetection = StallDetection(for: token)
    Lock.waits.lock()  //~ slept_with_two_locks
    defer { Lock.waits.unlock() }
    let wait = Wait.calls(token)
    var search = Waits.SearchNeeded.begins
    while ThreadRegistry.isCalled(token) {
      if let refusal = reasonNotToWait(wait, timeout, search) { return refusal }
      search = sleep(for: wait, token, timeout, &stallDetection, search)
    }
    return .ok
  }

  /// Sleeps until a call may have returned. Tells a watch if that takes long; without the waits'
  /// lock, which is held at the beginning and at the end.
  private static func sleep(
    for wait: Wait, _ token: Token, _ timeout: Timeout, _ stallDetection: inout StallDetection,
    _ search: Waits.SearchNeeded
  ) -> Waits.SearchNeeded {
    if search == .begins { shims_probe_remove_wait(token.rawValue) }
    let next = Waits.sleep(
      for: wait, wait.key, stallDetection.limit(timeout), isAgain: search != .begins)
    guard stallDetection.isOver else { return next }
    Lock.waits.unlock()
    _ = stallDetection.notifyIfStalled(token)
    Lock.waits.lock()
    return .begins
  }

  /// Why not to wait for running calls of a delegate. The waits' lock is held.
  ///
  /// - Returns: `pending`, if this thread is in such a call, waiting would close a cycle, or no
  ///   wait is wanted; `timeout`; or nil, to wait.
  private static func reasonNotToWait(
    _ wait: Wait, _ timeout: Timeout, _ search: Waits.SearchNeeded
  ) -> Status? {
    if timeout.isNone { return .pending }
    if search != .no && Waits.closesCycle(wait) { return .pending }  //~ cycle_not_found
    return timeout.isOver ? .timeout : nil
  }

  /// How many threads are waiting for calls of registrations that other threads have removed.
  private static let lateWaiters = Atomic<UInt32>(0)

  /// Waits for calls of registrations that other threads have removed.
  ///
  /// - Parameter body: Makes a fence, then looks at the hazards, and sleeps.
  static func waitLate(_ body: () -> Status) -> Status {
    // Relaxed: the fence of the body orders it. See `hazardDidEnd`.
    lateWaiters.wrappingAdd(1, ordering: .relaxed)
    defer { lateWaiters.wrappingSubtract(1, ordering: .relaxed) }
    return body()
  }

  // MARK: - The calling thread

  /// Called by an invocation that has cleared its hazard, and finds then that the registration is
  /// not live any more.
  ///
  /// The thread that has removed the registration may wait for the hazard: then the registration is
  /// still retired. Other threads may, too: they have counted themselves, made a heavy fence and
  /// then seen the hazard, so this sees the count. Otherwise nobody waits, and the list has an
  /// entry of a registration that was reclaimed long ago.
  @inline(never) static func hazardDidEnd(_ entry: InvocationList.Entry) {
    //~ no_wake_of_late_waiters
    if lateWaiters.load(ordering: .relaxed) != 0 || entry.id == entry.token.changed(to: .retired) {
      callDidReturn(entry.token)
    }
  }

  /// Called by an invocation or run after a call, if the registration is not live any more. Wakes
  /// the threads that wait for the call, and completes a deferred removal. No lock is held.
  @inline(never) static func callDidReturn(_ token: Token) {
    Lock.waits.lock()
    Waits.wakeSleepers(token.rawValue)  //~ no_wake_after_call
    Waits.wakeSleepers(Waits.anyCall)
    // If another thread still calls it, that thread comes here later.
    let finished = deferred.extractUncalled(token)
    checkInvariants()
    Lock.waits.unlock()
    finished.reclaimAndRelease()  //~ deferred_release_lost
  }

  // MARK: - Threads that end, and fork

  /// Does what calls would have done whose threads do not exist any more.
  static func callsDidEnd() {
    Lock.waits.lock()
    Waits.wakeSleepers()
    let finished = deferred.extractUncalled()
    checkInvariants()
    Lock.waits.unlock()
    finished.reclaimAndRelease()
  }

  /// The child of a fork has none of the threads that waited, or that were about to reclaim what
  /// they had removed. All of that is deferred to the calls that this thread is in, if any. So is
  /// what this thread itself was reclaiming when a function of the caller's forked: see
  /// `RegistrationChain.reclaimAndRelease`, and `Removal.complete`.
  static func deferAllInChild() {
    while let own = firstWaiter {
      firstWaiter = own.pointee.next
      own.pointee.retired = RegistrationChain()
    }
    deferred = .allRetiredInChild()
  }

  // MARK: - Invariants

  /// Everything here is retired. The waits' lock is held.
  private static func checkInvariants(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      let check = Check(file, line)
      deferred.checkRetired(file, line)
      Waits.checkInvariants(check)
      var (own, count) = (firstWaiter, UInt64(0))
      while let current = own {
        current.pointee.retired.checkRetired(file, line)
        own = current.pointee.next
        count &+= 1
        check.that(count < 1 << 20, "a list has an end", count)
      }
    #endif
  }
}
