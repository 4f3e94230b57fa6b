import MulticastShims
import Synchronization

/// Delegates that are removed while calls of them run: who waits for those calls, and what is left
/// for the thread whose call is the last to return.
///
/// A remover marks the delegate dead in every list, calls the heavy fence and looks for frames that
/// name it. An invocation names it, calls the light fence, looks whether it is dead, and calls;
/// when the call has returned it takes the name away, calls the light fence, and looks again. So
/// either the remover sees the name, or the invocation sees the death: before the call, and does
/// not make it; after the call, and comes to `attend`. What both do then is ordered by the lock of
/// calls.
enum Departures {
  // Guarded by the lock of calls.
  nonisolated(unsafe) private(set) static var departing = RegistrationChain()
  nonisolated(unsafe) private(set) static var waiting: UnsafeMutablePointer<Waiting>? = nil
  nonisolated(unsafe) private(set) static var sleepers = 0
  /// How many of those wait for a certain thread, whether it is in a call or not.
  nonisolated(unsafe) private(set) static var sleepersForThreads = 0

  /// What a thread waits for, on its stack: where the child of a fork finds it.
  struct Waiting {
    var running: RegistrationChain
    var next: UnsafeMutablePointer<Waiting>?
  }

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
    _ removed: RegistrationChain, patience: Patience
  ) -> Status {
    removed.checkLeaving()
    // Those that nobody calls do not wait for those that somebody does.
    var running = removed
    var finished = Calls.withTokens { calls in running.extract { !calls.contain($0.token) } }
    finished.finish()
    if running.isEmpty { return .ok }

    var status = Status.ok
    var own = Waiting(running: running, next: nil)
    withUnsafeMutablePointer(to: &own) { own in
      Lock.calls.lock()
      own.pointee.next = waiting
      waiting = own
      while true {
        finished = own.pointee.running.extract { !isCalled($0.token) }
        if !finished.isEmpty {
          Lock.calls.unlock()
          finished.finish()
          Lock.calls.lock()
          continue
        }
        guard let registration = own.pointee.running.first else { break }
        if let refusal = refusal(of: registration.token, patience) {
          // Still under the lock under which the name was seen: who takes it away comes later.
          _ = own.pointee.running.pop()
          departing.push(registration)
          checkInvariants()
          status = refusal
        } else {
          sleep(for: Awaited(token: registration.token), patience)
        }
      }
      leaveWaiting(own)
      Lock.calls.unlock()
    }
    return status
  }

  private static func leaveWaiting(_ own: UnsafeMutablePointer<Waiting>) {
    if waiting == own {
      waiting = own.pointee.next
      return
    }
    var other = waiting
    while let current = other {
      if current.pointee.next == own { current.pointee.next = own.pointee.next }
      other = current.pointee.next
    }
  }

  /// Waits until no thread calls a delegate that somebody else has removed.
  ///
  /// - Returns: `ok`: nobody calls it; or a refusal.
  static func wait(for token: UInt64, patience: Patience) -> Status {
    Lock.calls.lock()
    defer { Lock.calls.unlock() }
    while isCalled(token) {
      if let refusal = refusal(of: token, patience) { return refusal }
      sleep(for: Awaited(token: token), patience)
    }
    return .ok
  }

  /// Why not to wait for the calls of a delegate that is called. The lock of calls is held.
  ///
  /// - Returns: `pending`: this thread is in one, or waiting would close a cycle, or there is to be
  ///   no waiting; `timeout`; nil: it is to wait.
  private static func refusal(of token: UInt64, _ patience: Patience) -> Status? {
    guard case .until(let moment) = patience else { return .pending }
    if closesCycle(Awaited(token: token)) { return .pending }
    return moment != .max && shims_now_ns() >= moment ? .timeout : nil
  }

  /// Sleeps until something has ended, or the time is up. The lock of calls is given up and taken
  /// again: a wake-up between the look before and the sleep is not lost, because it is sent under
  /// it.
  private static func sleep(for awaited: Awaited, _ patience: Patience) {
    guard case .until(let moment) = patience else { return }
    // Looked up each time: a release that this thread ran meanwhile may have given it a record.
    Lock.calls.checkBeforeSleeping()
    let thread = ThreadRecord.current
    thread?.storage.pointee.awaited = awaited
    sleepers &+= 1
    if awaited.thread != nil { sleepersForThreads &+= 1 }
    shims_sleep(shims_get_call_condition(), Lock.calls.mutex, moment)
    if awaited.thread != nil { sleepersForThreads &-= 1 }
    sleepers &-= 1
    thread?.storage.pointee.awaited = Awaited()
  }

  /// Sleeps until something has come true that depends on no call of anybody's.
  static func waitUntil(_ isTrue: () -> Bool) {
    Lock.calls.lock()
    while !isTrue() { sleep(for: Awaited(), .endless) }
    Lock.calls.unlock()
  }

  /// Sleeps until something has come true that releases bring about, on whatever threads. For a
  /// thread outside of all calls and releases alone.
  ///
  /// - Returns: false where a thread waits for this one all the same, for it to run a queue.
  static func waitForReleases(until isTrue: () -> Bool) -> Bool {
    Lock.calls.lock()
    defer { Lock.calls.unlock() }
    while !isTrue() {
      if sleepersForThreads > 0, let thread = ThreadRecord.current, isAwaited(thread) {
        return false
      }
      sleep(for: Awaited(isAnybody: true), .endless)
    }
    return true
  }

  private static func isAwaited(_ thread: ThreadRecord) -> Bool {
    ThreadRegistry.all.contains {
      $0.storage.pointee.awaited.thread != nil && thread.concerns($0.storage.pointee.awaited)
    }
  }

  /// Sleeps until another thread has brought something about.
  ///
  /// - Parameters:
  ///   - other: Holds the identity of that thread, or 0.
  ///   - isForRoom: Whether any other thread would do as well, by running a queue.
  /// - Returns: false where it waits, directly or through others, for the calling thread.
  static func waitUntil(
    other: UnsafeMutablePointer<Atomic<UInt64>>, isForRoom: Bool, _ isTrue: () -> Bool
  ) -> Bool {
    Lock.calls.lock()
    defer { Lock.calls.unlock() }
    let awaited = Awaited(thread: other, isForRoom: isForRoom)
    while !isTrue() {
      if closesCycle(awaited) { return false }
      sleep(for: awaited, .endless)
    }
    return true
  }

  /// Has those who sleep look again, after something has come true.
  ///
  /// - Parameter change: What makes it true, where that is to be seen by nobody else.
  static func wake(_ change: () -> Void = {}) {
    Lock.calls.lock()
    change()
    wakeSleepers()
    Lock.calls.unlock()
  }

  private static func wakeSleepers() {
    if sleepers > 0 { shims_wake_all(shims_get_call_condition()) }
  }

  /// Waits for calls on other threads of delegates that were removed already, by somebody who did
  /// not wait or is just doing it.
  ///
  /// - Parameter isMeant: Given the multicast of a call and its token.
  /// - Returns: `pending` where this thread itself is in such a call, or waiting would close a
  ///   cycle.
  static func settle(
    after cleanup: Cleanup, needsFence: Bool = true,
    where isMeant: (_ multicast: UInt, _ token: UInt64) -> Bool
  ) -> Status {
    // Whoever removed them may not have had the heavy fence yet; ours has served for all.
    if needsFence && !cleanup.needsFence {
      guard Ticket.fence() else { return .system }
    }
    var status = Status.ok
    for record in ThreadRegistry.all {
      let isOwn = record == ThreadRecord.current
      var depth: UInt32 = 0
      while let (multicast, token) = record.call(at: depth) {
        if token != 0 && isMeant(multicast, token) {
          let outcome = isOwn ? .pending : wait(for: token, patience: .endless)
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

  /// Whether those that are to be waited for wait, directly or through others, for this thread.
  ///
  /// Threads that sleep have published what they wait for, and cannot change what they call; one
  /// that goes to sleep later looks for cycles itself, and finds this wait published. A thread
  /// outside of all calls is in nobody's way, unless somebody waits for it to run a queue.
  private static func closesCycle(_ first: Awaited) -> Bool {
    let thread = ThreadRecord.current
    let isInside = thread?.isInside ?? false
    guard isInside || sleepersForThreads > 0 else { return false }
    for record in ThreadRegistry.all { record.storage.pointee.search = .unknown }
    reach(first)
    while thread == nil || thread?.storage.pointee.search == .unknown {
      let next = ThreadRegistry.all.first {
        $0.storage.pointee.search == .reached && !$0.storage.pointee.awaited.isNothing
      }
      guard let next else { return false }
      next.storage.pointee.search = .followed
      let awaited = next.storage.pointee.awaited
      if !isForAnybody(awaited) {
        reach(awaited)
      } else if awaited.isAnybody || !first.isForRoom {
        return true  // it might be this thread that they need; not if it needs the same itself
      }
    }
    return true
  }

  private static func reach(_ awaited: Awaited) {
    let isForAnybody = isForAnybody(awaited)
    for record in ThreadRegistry.all where record.storage.pointee.search == .unknown {
      let isAsleep = !record.storage.pointee.awaited.isNothing
      if isForAnybody ? isAsleep : record.concerns(awaited) {
        record.storage.pointee.search = .reached
      }
    }
  }

  /// Whether it cannot be told who has to do something: nobody in particular, or a thread that is
  /// gone.
  private static func isForAnybody(_ awaited: Awaited) -> Bool {
    if awaited.isAnybody { return true }
    return awaited.thread != nil && !ThreadRegistry.all.contains { $0.concerns(awaited) }
  }

  // MARK: - The calling side

  /// Called by an invocation that has left a call and found the delegate dead: wakes who waits for
  /// it, and does what removers have left to do. No lock is held.
  @inline(never) static func attend(_ token: UInt64) {
    Lock.calls.lock()
    wakeSleepers()
    // Where another thread still calls it, that one comes here after us.
    var finished = departing.extract { $0.token == token && !isCalled(token) }
    checkInvariants()
    Lock.calls.unlock()
    finished.finish()
  }

  // MARK: - Threads that end, and fork

  /// Does what the calls of threads that are gone would have done.
  static func attendAll() {
    Lock.calls.lock()
    wakeSleepers()
    var finished = departing.extract { !isCalled($0.token) }
    checkInvariants()
    Lock.calls.unlock()
    finished.finish()
  }

  /// The child of a fork has none of the threads that slept: what they waited for is left to the
  /// calls that this thread is in, if any.
  static func adoptInChild() {
    sleepers = 0
    sleepersForThreads = 0
    while let own = waiting {
      waiting = own.pointee.next
      while let registration = own.pointee.running.pop() { departing.push(registration) }
    }
  }
}
