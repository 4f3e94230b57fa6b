import MulticastHeader
import MulticastShims
import Synchronization

/// The last invocations of a multicast, kept for delegates that are added later. The stripe's lock
/// guards them.
///
/// An invocation is kept and numbered before it reads the list. An add begins its replay and adds
/// the delegates without releasing the lock. While the replay is running, invocations skip these
/// delegates (`RegistrationDetails.replayed`), because the replay also covers invocations kept
/// while it is running. When a replay finds that no kept invocation is left, it ends in the same
/// critical section.
struct Replay {
  /// The number of invocations to keep, or 0 if nothing is replayed. More invocations are kept
  /// while a replay still needs them.
  let most: UInt32
  private var kept = KeptInvocations()
  /// The number of the newest kept invocation.
  private var newest: UInt = 0
  private var firstRun: Run.Address? = nil

  /// The number of additional invocations kept for a running replay. Once this number has been
  /// reached, the next invocation waits until the replay is over.
  private static let lead: UInt64 = 64

  init(most: UInt32) { self.most = most }

  var count: UInt32 { kept.count }

  mutating func dropAll(_ payloads: inout ReleasedPayloads) { kept.dropAll(&payloads) }

  // MARK: - Under the lock

  mutating func keep(
    _ invocation: KeptInvocation.Address, _ payloads: inout ReleasedPayloads
  ) -> UInt {
    newest &+= 1
    kept.append(invocation)
    var next = firstRun
    while let run = next {
      if run.pointee.upcoming == nil { run.pointee.upcoming = invocation }  //~ replay_misses_newest
      next = run.pointee.next
    }
    drop(&payloads)
    return newest
  }

  /// Drops the oldest invocations in excess of `most`, except those that a replay still needs.
  private mutating func drop(_ payloads: inout ReleasedPayloads) {
    while kept.count > most && slowest == nil {  //~ dropped_before_replayed
      payloads.release(kept.takeFirst()?.payload)
    }
  }

  /// A replay whose next invocation is the oldest kept invocation.
  private var slowest: Run.Address? { firstRun?.first { $0.pointee.upcoming == kept.first } }

  /// A replay that an invocation has to wait for.
  mutating func slowRun() -> Run? {
    if UInt64(kept.count) < UInt64(most) &+ Self.lead { return nil }
    while let run = slowest {
      if Run(run).hasDelegate { return Run(run) }
      end(run)  // its delegates were removed, so there is nothing to wait for
    }
    return nil
  }

  mutating func begin(_ run: Run.Address) {
    var (next, older) = (kept.first, Int(kept.count) &- Int(most))
    while older > 0 {
      next = next?.pointee.next
      older &-= 1
    }
    run.pointee.upcoming = next
    run.pointee.isOver = false
    run.pointee.next = firstRun
    firstRun = run
  }

  /// Returns a replay's next invocation. Ends the replay if there is none or `goesOn` is false.
  fileprivate mutating func advance(
    _ run: Run.Address, goesOn: Bool, _ payloads: inout ReleasedPayloads
  ) -> KeptInvocation? {
    let next = goesOn ? run.pointee.upcoming : nil
    if let next {
      next.pointee.payload?.retain()  //~ replayed_payload_not_retained
      run.pointee.upcoming = next.pointee.next
    } else {
      end(run)
    }
    let kept = next?.pointee
    drop(&payloads)
    return kept
  }

  private mutating func end(_ run: Run.Address) {
    run.pointee.isOver = true
    for index in 0..<run.pointee.count {
      let token = Token(Run(run).tokens[index].id)
      let registration = Registration(index: token.index)
      if registration.id.isLive(as: token) {
        // Relaxed is enough. An invocation with a higher number receives that number under the lock
        // later, so it reads this value.
        //~ replay_without_number
        registration.details?.pointee.replayed.store(newest &+ 1, ordering: .relaxed)
      }
    }
    run.unlink(from: &firstRun)
  }
}

extension Replay {
  /// A running replay for delegates that a thread has added.
  ///
  /// The replay is linked to the thread's record, so that another thread can end it if this thread
  /// no longer exists.
  struct Run {
    typealias Address = UnsafeMutablePointer<Storage>

    struct Storage: Linked {
      /// The next replay of the same multicast. Other threads change this field while this thread
      /// reads the other fields. It comes first, because otherwise the thread sanitizer would
      /// report false races (see `SlotHeader`).
      var next: Address? = nil
      let multicast: Multicast
      let thread: ThreadRecord
      /// A unique number, which no earlier replay in the same memory has had.
      let number: UInt64
      /// The number of tokens that follow this struct.
      let count: Int
      let nextOfThread: Address?
      /// The next invocation to replay.
      var upcoming: KeptInvocation.Address? = nil
      var isOver = true
    }

    private static let newestNumber = Atomic<UInt64>(0)

    let storage: Address

    fileprivate init(_ storage: Address) { self.storage = storage }

    init(_ count: Int, _ multicast: Multicast, on thread: ThreadRecord) throws(Status) {
      let block = try Allocator.allocate(size: Self.size(count))
      storage = block.bindMemory(to: Storage.self, capacity: 1)
      let outer = thread.storage.pointee.replays?.assumingMemoryBound(to: Storage.self)
      let number = Self.newestNumber.wrappingAdd(1, ordering: .relaxed).newValue
      storage.initialize(
        to: Storage(
          multicast: multicast, thread: thread, number: number, count: count, nextOfThread: outer))
      setInnermost(storage)
    }

    private static func size(_ count: Int) -> Int {
      MemoryLayout<Storage>.stride &+ count &* MemoryLayout<multicast_token>.stride
    }

    private func setInnermost(_ run: Address?) {
      Waits.wake(Self.wait(for: storage.pointee.thread).key) {
        storage.pointee.thread.storage.pointee.replays = UnsafeMutableRawPointer(run)
      }
    }

    func deallocate() {
      setInnermost(storage.pointee.nextOfThread)
      Allocator.deallocate(storage, size: Self.size(storage.pointee.count))
    }

    var tokens: UnsafeMutablePointer<multicast_token> {
      UnsafeMutableRawPointer(storage + 1).assumingMemoryBound(to: multicast_token.self)
    }

    fileprivate static func wait(for thread: ThreadRecord) -> Wait {
      .thread(thread.storage.pointee.identity.address)
    }

    /// Whether at least one of the delegates is still registered.
    fileprivate var hasDelegate: Bool {
      (0..<storage.pointee.count).contains { Registration.isLive(Token(tokens[$0].id)) }
    }

    /// Waits until the thread has ended this replay or another replay, or until this replay's
    /// delegates may have been removed.
    ///
    /// A removal retires the registrations, and then wakes sleeping threads under the waits' lock.
    /// So this thread either finds the registrations retired or is woken.
    ///
    /// - Parameters:
    ///   - thread: The thread of the replay. The replay may be over by now.
    ///   - number: The number of the replay. If the replay is over, its memory may belong to
    ///     another replay whose tokens are being written.
    /// - Returns: false if `thread` is this thread or is waiting for this thread.
    func waitForEnd(on thread: ThreadRecord, _ number: UInt64) -> Bool {
      let wait = Self.wait(for: thread)
      Lock.waits.lock()
      defer { Lock.waits.unlock() }
      if thread == ThreadRecord.current || Waits.closesCycle(wait) { return false }
      // The replay is not freed while it is linked to the thread's record.
      if isHeld(by: thread) && storage.pointee.number == number && hasDelegate {
        _ = Waits.sleep(for: wait, wait.key, .unlimited)
      }
      return true
    }

    private func isHeld(by thread: ThreadRecord) -> Bool {
      var run = thread.storage.pointee.replays?.assumingMemoryBound(to: Storage.self)
      while let current = run, current != storage { run = current.pointee.nextOfThread }
      return run != nil
    }

    /// Ends the replays of a thread that no longer exists. From now on, invocations call the
    /// delegates of these replays directly.
    static func endAll(of thread: ThreadRecord) {
      while let run = thread.storage.pointee.replays?.assumingMemoryBound(to: Storage.self) {
        _ = run.pointee.multicast.advance(Run(run), goesOn: false)
        Run(run).deallocate()
      }
    }
  }
}

extension Multicast {
  /// The replay of an existing multicast that has policies. The caller holds the stripe's lock.
  var replay: Replay {
    unsafeAddress { UnsafePointer(replayAddress) }
    nonmutating unsafeMutableAddress { replayAddress }
  }

  private var replayAddress: UnsafeMutablePointer<Replay> {
    withUnsafeMutablePointer(to: &policies.storage.pointee.replay) { $0 }
  }

  /// Returns a replay's next invocation, with a reference to its payload. No lock is held.
  func advance(_ run: Replay.Run, goesOn: Bool) -> KeptInvocation? {
    var payloads = ReleasedPayloads()
    var kept: KeptInvocation? = nil
    let stripe = self.stripe
    stripe.lock()
    if isCurrent && !run.storage.pointee.isOver {
      kept = replay.advance(run.storage, goesOn: goesOn, &payloads)
    }
    stripe.unlock()
    payloads.cleanUp()
    return kept
  }
}

/// An invocation kept for later, because it has been deferred or may be replayed.
struct KeptInvocation {
  typealias Address = UnsafeMutablePointer<KeptInvocation>

  let invocation: Invocation
  /// The payload to release when the invocation is over; nil if the invocation passes on the
  /// caller's pointer.
  let payload: Payload?
  var next: Address? = nil
}

/// A list of kept invocations, oldest first.
struct KeptInvocations {
  private(set) var first: KeptInvocation.Address? = nil
  private var last: KeptInvocation.Address? = nil
  private(set) var count: UInt32 = 0

  mutating func append(_ kept: KeptInvocation.Address) {
    if let last { last.pointee.next = kept } else { first = kept }
    last = kept
    count &+= 1
  }

  /// Removes the oldest invocation. The caller takes over the reference to the payload.
  mutating func takeFirst() -> KeptInvocation? {
    guard let first else { return nil }
    let kept = first.pointee
    // Unlink the invocation before freeing it, because a fork may happen between the steps.
    self.first = kept.next
    if kept.next == nil { last = nil }
    count &-= 1
    Allocator.free(first)
    return kept
  }

  mutating func dropAll(_ released: inout ReleasedPayloads) {
    while let kept = takeFirst() { released.release(kept.payload) }  //~ kept_payload_lost
  }
}
