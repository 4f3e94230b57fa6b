import MulticastShims
import Synchronization

extension ThreadRecord {
  var systemNumber: UInt64 { UInt64(storage.pointee.systemNumber.load(ordering: .relaxed)) }
}

extension Report {
  /// A copy of a sleeping thread's wait.
  private struct Sleep {
    var wait = Wait.nothing
    var since: UInt64 = 0
    var isAsleep = false
    /// The system's number for the thread. Set only for a thread without a record.
    var thread: UInt64 = 0
  }

  // MARK: - Threads

  /// Adds the threads that are in calls or are waiting.
  ///
  /// - Parameter multicast: If this is not nil, adds only the threads that are in calls to this
  ///   multicast's delegates, or are waiting for these calls.
  mutating func addThreads(_ multicast: Multicast?) {
    for record in ThreadRegistry.all where text.goesOn {
      var isKnown = false
      var depth: UInt32 = 0
      while depth < ThreadRecord.frameLimit, let (target, hazard) = record.frame(depth).published {
        depth &+= 1
        if let multicast, target != multicast.target && !multicast.owns(hazard) { continue }
        begin(record.systemNumber, &isKnown)
        addCall(target, hazard)
      }
      var sleep = Sleep()
      guard take(Lock.waits) else {
        if isKnown { text.add("  a thread is changing what it waits for, and does not go on\n") }
        continue
      }
      sleep.wait = record.wait
      sleep.isAsleep = !sleep.wait.isNothing
      sleep.since = record.storage.pointee.waitsSince
      Lock.waits.unlock()
      add(sleep, of: record.systemNumber, multicast, isKnown)
    }
    var place = 0
    while text.goesOn, take(Lock.waits) {
      var sleep = Sleep()
      if let sleeper = Waits.unregisteredWaiter(at: place) {
        sleep.wait = sleeper.pointee.wait
        sleep.since = sleeper.pointee.since
        sleep.thread = UInt64(sleeper.pointee.systemNumber)
        sleep.isAsleep = true
      }
      Lock.waits.unlock()
      if !sleep.isAsleep { return }
      add(sleep, of: sleep.thread, multicast, false)
      place &+= 1
    }
  }

  /// Adds the line that begins a thread's section, unless that line has already been added.
  private mutating func begin(_ thread: UInt64, _ isKnown: inout Bool) {
    if isKnown { return }
    isKnown = true
    var name = shims_label()
    shims_read_thread_name(UInt32(truncatingIfNeeded: thread), &name)
    text.keep(&name)
    text.add("\nthread %d%l\n", thread)
  }

  private mutating func addCall(_ target: Target, _ hazard: Token) {
    let isCall = hazard.kind == .registration
    if !target.isInvocation && !target.isRun { return }
    if isCall {
      text.add("  in a call of ")
      addName(of: hazard)
    } else {
      text.add("  between calls")
    }
    if target.isInvocation {
      text.add(" by ")
      addName(of: Multicast(target))
      text.add("\n")
    } else {
      text.add(" from queue %x\n", Queue(slot: target.slot).handle.rawValue)
    }
  }

  // MARK: - Waits

  private mutating func add(
    _ sleep: Sleep, of thread: UInt64, _ multicast: Multicast?, _ wasKnown: Bool
  ) {
    if !sleep.isAsleep { return }
    var token = Token.none
    switch sleep.wait {
    case .calls(let first), .callsOfSeveral(let first): token = first
    default: break
    }
    if let multicast, !multicast.owns(token) { return }
    var isKnown = wasKnown
    begin(thread, &isKnown)
    let elapsed = shims_now_ns() &- sleep.since
    text.add("  waits %t s for ", elapsed)
    switch sleep.wait {
    case .calls, .callsOfSeveral:
      if token.kind == .watch {
        text.add("functions of a watch")
      } else {
        text.add("calls of ")
        addName(of: token)
      }
      if case .callsOfSeveral = sleep.wait { text.add(", and of others") }
      text.add("\n")
      for record in ThreadRegistry.all where record.isCalling(token) {
        text.add("    thread %d is in one\n", record.systemNumber)
      }
    case .thread(let identity):
      add(identity, "thread %d to end what it does\n")
    case .room(let consumer):
      text.add("room in queue %x; to run it: ", Self.queue(of: consumer).rawValue)
      add(consumer, "thread %d\n")
    case .run(let calls):
      text.add("calls in queue %x; to run it: ", calls.queue.rawValue)
      add(calls.consumer, "thread %d\n")
    case .releases: text.add("release functions on other threads\n")
    case .nothing: text.add("another thread\n")
    }
  }

  /// Completes a line with the number of the thread that is expected to end the wait.
  private mutating func add(
    _ identity: UnsafeMutablePointer<Atomic<ThreadIdentity>>, _ format: Text.Format
  ) {
    if let record = ThreadRegistry.record(of: identity.pointee.load(ordering: .relaxed)) {
      text.add(format, record.systemNumber)
    } else {
      text.add("a thread that is not known\n")
    }
  }
}

extension Multicast {
  /// Whether a token belongs to a registration of this multicast, or to a removed registration that
  /// is still being called. No lock is held, so the slot may have been reused.
  fileprivate func owns(_ token: Token) -> Bool {
    Registration(slotOf: token)?.owner == handle.index
  }
}
