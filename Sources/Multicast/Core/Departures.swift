import MulticastShims

/// Delegates that are removed while calls of them run: who waits for those calls, and what is left
/// for the thread whose call is the last to return.
///
/// A remover marks the delegate dead in every list, calls the heavy fence and looks for frames that
/// name it. An invocation names it, calls the light fence, looks whether it is dead, and calls; when
/// the call has returned it takes the name away, calls the light fence, and looks again. So either
/// the remover sees the name, or the invocation sees the death: before the call, and does not make
/// it; after the call, and comes to `attend`. What both do then is ordered by the lock of calls.
enum Departures {
  // Guarded by the lock of calls.
  nonisolated(unsafe) private static var departing = RegistrationChain()
  nonisolated(unsafe) private static var sleepers = 0

  /// How long a removal waits for calls on other threads.
  enum Patience {
    case none
    /// Until a moment on the monotonic clock; `.max` is for ever.
    case until(UInt64)

    static let endless = Patience.until(.max)

    static func nanoseconds(_ timeout: UInt64) -> Patience {
      let (deadline, isBeyond) = shims_now_ns().addingReportingOverflow(timeout)
      return .until(isBeyond ? .max : deadline)
    }
  }

  // MARK: - The removing side

  /// Sees off what has been removed: waits, releases, gives slots back. After the heavy fence.
  ///
  /// - Returns: `ok`; `pending` or `timeout` where a call still runs that will do the rest.
  static func seeOff(
    _ removed: RegistrationChain, by thread: ThreadRecord?, patience: Patience
  ) -> Status {
    var running = removed
    // Those that nobody calls do not wait for those that somebody does.
    var finished = running.extract { !isCalled($0.token) }
    finished.finish()

    var status = Status.ok
    while let registration = running.pop() {
      let outcome = wait(
        for: registration.token, removed: registration, by: thread, patience: patience)
      if outcome == .ok {
        var alone = RegistrationChain()
        alone.push(registration)
        alone.finish()
      } else {
        status = outcome
      }
    }
    return status
  }

  /// Waits until no thread calls a delegate that is dead.
  ///
  /// - Parameter removed: The delegate's registration where the caller has removed it. Unless the
  ///   result is `ok` it has passed to the thread whose call is the last.
  /// - Returns: `ok`: nobody calls it; `pending`: this thread does, or waiting would close a cycle,
  ///   or there was to be no waiting; `timeout`.
  static func wait(
    for token: UInt64, removed registration: Registration?, by thread: ThreadRecord?,
    patience: Patience
  ) -> Status {
    Lock.calls.lock()
    defer { Lock.calls.unlock() }
    while isCalled(token) {
      let deadline: UInt64
      var refusal: Status? = nil
      switch patience {
      case .none:
        deadline = 0
        refusal = .pending
      case .until(let moment):
        deadline = moment
        if let thread, closesCycle(thread, waitingFor: token) {
          refusal = .pending
        } else if moment != .max && shims_now_ns() >= moment {
          refusal = .timeout
        }
      }
      if let refusal {
        // Still under the lock under which the name was seen: who takes it away comes later.
        if let registration { departing.push(registration) }
        return refusal
      }
      // Sleeping gives up the lock and takes it again: a wake-up between the look and the sleep is
      // not lost, because it is sent under the lock.
      thread?.storage.pointee.awaited = token
      sleepers &+= 1
      shims_sleep(deadline)
      sleepers &-= 1
      thread?.storage.pointee.awaited = 0
    }
    return .ok
  }

  /// Waits for calls of delegates that were removed already, by somebody who did not wait or is just
  /// doing it.
  ///
  /// - Parameter isMeant: Given the multicast of a call and its token.
  static func settle(
    after cleanup: Cleanup, where isMeant: (_ multicast: UInt, _ token: UInt64) -> Bool
  ) -> Status {
    // Whoever removed them may not have had the heavy fence yet; ours has served for all.
    if !cleanup.needsFence {
      guard Ticket.fence() else { return .system }
    }
    var status = Status.ok
    for record in ThreadRegistry.all {
      var depth: UInt32 = 0
      while let (multicast, token) = record.call(at: depth) {
        if token != 0 && isMeant(multicast, token) {
          let outcome = wait(
            for: token, removed: nil, by: cleanup.thread, patience: .endless)
          if outcome != .ok { status = outcome }
        }
        depth &+= 1
      }
    }
    return status
  }

  private static func isCalled(_ token: UInt64) -> Bool {
    ThreadRegistry.all.contains { $0.isCalling(token) }
  }

  /// Whether those who call a delegate wait, directly or through others, for this thread.
  ///
  /// Threads that sleep have published what they wait for, and cannot change what they call; one that
  /// goes to sleep later looks for cycles itself, and finds this wait published. A thread outside
  /// of all calls is in nobody's way.
  private static func closesCycle(_ thread: ThreadRecord, waitingFor token: UInt64) -> Bool {
    guard thread.storage.pointee.depth > 0 else { return false }
    for record in ThreadRegistry.all { record.storage.pointee.search = .unknown }
    var awaited = token
    while true {
      for record in ThreadRegistry.all
      where record.storage.pointee.search == .unknown && record.isCalling(awaited) {
        record.storage.pointee.search = .reached
      }
      if thread.storage.pointee.search != .unknown { return true }
      let next = ThreadRegistry.all.first {
        $0.storage.pointee.search == .reached && $0.storage.pointee.awaited != 0
      }
      guard let next else { return false }
      next.storage.pointee.search = .followed
      awaited = next.storage.pointee.awaited
    }
  }

  // MARK: - The calling side

  /// Called by an invocation that has left a call and found the delegate dead: wakes who waits for
  /// it, and does what removers have left to do. No lock is held.
  @inline(never) static func attend(_ token: UInt64) {
    Lock.calls.lock()
    if sleepers > 0 { shims_wake_all() }
    // Where another thread still calls it, that one comes here after us.
    var finished = departing.extract { $0.token == token && !isCalled(token) }
    Lock.calls.unlock()
    finished.finish()
  }

  // MARK: - Threads that end, and fork

  /// Does what the calls of threads that are gone would have done.
  static func attendAll() {
    Lock.calls.lock()
    if sleepers > 0 { shims_wake_all() }
    var finished = departing.extract { !isCalled($0.token) }
    Lock.calls.unlock()
    finished.finish()
  }

  /// The child of a fork has none of the threads that slept.
  static func forgetSleepers() { sleepers = 0 }
}
