import MulticastShims
import Synchronization

/// Removals that are not complete because calls are still running.
///
/// The removing thread may wait for these calls. If it does not, the removal is deferred, and the
/// thread whose call returns last completes it.
enum PendingRemovals {
  // Guarded by the waits' lock.
  nonisolated(unsafe) private static var deferred = RegistrationChain()
  nonisolated(unsafe) private static var firstWaiter: UnsafeMutablePointer<Waiter>? = nil

  /// A waiting thread, and the registrations that it will reclaim. The struct is on that thread's
  /// stack. In the child of a fork, the chain is empty.
  private struct Waiter: Linked {
    var retired: RegistrationChain
    var next: UnsafeMutablePointer<Waiter>?
  }

  // MARK: - The removing thread

  /// Completes the removal of registrations that are being called. For each of them, it either
  /// waits for the calls or defers the removal. Called after the heavy fence.
  ///
  /// - Returns: `pending` or `timeout` if at least one removal was deferred, otherwise `ok`.
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
          // This thread has seen the hazard under this lock. The thread that clears the hazard
          // takes the lock later, and finds the deferred registration.
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

  /// Waits until no thread is calling a delegate that another thread has removed. Returns `ok`, or
  /// the reason why this function did not wait.
  static func wait(for token: Token, _ timeout: Timeout) -> Status {
    // If the token has been stale for a long time, usually no call is running.
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

  /// Sleeps until a call may have returned. If the call takes a long time, releases the waits' lock
  /// and notifies a watch. The caller holds the lock, and holds it again when this function
  /// returns.
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

  /// The reason not to wait for running calls to a delegate. The caller holds the waits' lock.
  ///
  /// - Returns: nil if the thread may wait; `timeout` if time is up; `pending` if this thread is in
  ///   such a call, if waiting would close a cycle, or if the caller does not want to wait.
  private static func reasonNotToWait(
    _ wait: Wait, _ timeout: Timeout, _ search: Waits.SearchNeeded
  ) -> Status? {
    if timeout.isNone { return .pending }
    if search != .no && Waits.closesCycle(wait) { return .pending }  //~ cycle_not_found
    return timeout.isOver ? .timeout : nil
  }

  /// The number of threads waiting for calls to registrations that other threads have removed.
  private static let lateWaiters = Atomic<UInt32>(0)

  /// Waits for calls to registrations that other threads have removed. `body` executes a fence,
  /// checks the hazards, and sleeps if necessary.
  static func waitLate(_ body: () -> Status) -> Status {
    // Relaxed is enough, because `body` executes a fence afterwards (see `hazardDidEnd`).
    lateWaiters.wrappingAdd(1, ordering: .relaxed)
    defer { lateWaiters.wrappingSubtract(1, ordering: .relaxed) }
    return body()
  }

  // MARK: - The calling thread

  /// Called by an invocation that has cleared its hazard and then found that the registration is no
  /// longer live.
  ///
  /// Two kinds of threads may be waiting for the hazard to be cleared:
  ///
  /// 1. The thread that removed the registration. As long as it is waiting, the registration is
  ///    retired.
  /// 2. Other threads. Each of them has counted itself, executed a fence, and then seen the hazard.
  ///    This thread cleared the hazard later, so it sees the count.
  ///
  /// If the registration is not retired and the count is 0, no thread is waiting. The entry is then
  /// left over from a registration that was reclaimed long ago.
  @inline(never) static func hazardDidEnd(_ entry: InvocationList.Entry) {
    if lateWaiters.load(ordering: .relaxed) != 0 || entry.id == entry.token.changed(to: .retired) {
      callDidReturn(entry.token)
    }
  }

  /// Called by an invocation or run after a call, if the registration is no longer live. Wakes the
  /// threads waiting for the call, and completes a deferred removal. No lock is held.
  @inline(never) static func callDidReturn(_ token: Token) {
    Lock.waits.lock()
    Waits.wakeSleepers(token.rawValue)  //~ no_wake_after_call
    Waits.wakeSleepers(Waits.anyCall)
    // If another thread is still calling the delegate, that thread calls this function later.
    let finished = deferred.extractUncalled(token)
    checkInvariants()
    Lock.waits.unlock()
    finished.reclaimAndRelease()  //~ deferred_release_lost
  }

  // MARK: - Threads that end, and fork

  /// Performs the last steps of calls whose threads no longer exist.
  static func callsDidEnd() {
    Lock.waits.lock()
    Waits.wakeSleepers()
    let finished = deferred.extractUncalled()
    checkInvariants()
    Lock.waits.unlock()
    finished.reclaimAndRelease()
  }

  /// Defers the pending removals in the child of a fork. The threads that were waiting or about to
  /// reclaim registrations do not exist in the child. Their removals are deferred until the calls
  /// that the child's thread is in, if any, have returned. The same happens to removals whose
  /// registrations this thread itself was reclaiming when a caller's function forked (see
  /// `RegistrationChain.reclaimAndRelease` and `Removal.complete`).
  static func deferAllInChild() {
    while let own = firstWaiter {
      firstWaiter = own.pointee.next
      own.pointee.retired = RegistrationChain()
    }
    deferred = .allRetiredInChild()
  }

  // MARK: - Invariants

  /// Checks that all pending registrations are retired. The caller holds the waits' lock.
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
