import MulticastHeader
import Synchronization

/// A queue's waiting calls in a ring of fixed size, oldest first. The queue's lock guards the ring.
///
/// Positions only increase. The low bits of a position select the place in the ring. Each
/// registration stores the position of its newest call, and each call stores the position of the
/// same registration's previous call. So a delegate's calls can be found without searching through
/// all calls. A cancelled call leaves a gap, which is a place without a call.
///
/// While the head is open, the thread that runs the queue takes out the oldest calls without the
/// lock (see `RingHead`). That thread works on copies of the calls, so it does not read the ring.
struct CallRing: ~Copyable {
  private var places: Places
  private(set) var tail: UInt64
  /// The first position used by the slot's current queue.
  private var begin: UInt64
  /// The number of gaps between the head and the tail.
  private(set) var gaps: UInt64
  /// An earlier position of the head. It is used where an earlier position is good enough, because
  /// reading the head would take its cache line away from the thread that is running the queue.
  private(set) var knownHead: UInt64
  // The padding before and after the head puts it into a separate cache line.
  private let before: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)
  let head: RingHead
  private let after: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)

  struct Places {
    fileprivate var calls: WaitingCall.Address? = nil
    fileprivate var mask: UInt64 = 0

    private static let alignment = 64

    fileprivate init() {}

    /// Allocates 1.5 times as many places as the capacity, so that gaps rarely fill the ring.
    init(capacity: UInt32) throws(Status) {
      var size: UInt64 = 2
      while size < UInt64(capacity) + UInt64(capacity) / 2 { size *= 2 }
      try Allocator.checkSize(count: size, stride: MemoryLayout<WaitingCall>.stride)
      mask = size - 1
      calls = try Allocator.allocate(size: byteCount, alignment: Self.alignment)
        .bindMemory(to: WaitingCall.self, capacity: Int(size))
    }

    private var byteCount: Int { Int(mask + 1) * MemoryLayout<WaitingCall>.stride }

    func deallocate() {
      Allocator.deallocate(
        calls.unsafelyUnwrapped, size: byteCount, alignment: Self.alignment)
    }
  }

  /// Starts using the places. The positions continue where the slot's previous queue stopped.
  mutating func start(with places: Places) {
    self.places = places
    tail = max(head.position, 1)
    begin = tail
    gaps = 0
    knownHead = tail
    head.move(to: tail)
  }

  /// Stops using the places and returns them. The ring must be empty.
  mutating func end() -> Places {
    let places = self.places
    self.places = Places()
    return places
  }

  var mask: UInt64 { places.mask }

  func call(_ position: UInt64) -> WaitingCall.Address {
    places.calls.unsafelyUnwrapped + Int(truncatingIfNeeded: position & places.mask)
  }

  /// The number of waiting calls.
  var count: UInt64 { get { tail &- head.position &- gaps } }

  /// An upper bound on `count`, computed without reading the head.
  var countAtMost: UInt64 { get { tail &- knownHead &- gaps } }

  /// The number of calls that have ever been appended.
  var appended: UInt64 { tail &- begin }

  /// A delegate's newest waiting call.
  func newest(of details: RegistrationDetails.Address) -> WaitingCall.Address? {
    let position = details.pointee.lastCall
    return position < head.position ? nil : call(position)
  }

  // MARK: - Appending calls

  /// Appends a call without its payload, which the caller then sets. The caller has made sure that
  /// fewer calls are waiting than the capacity allows, and that the ring has a free place. The ring
  /// has a free place if the tail is below `fastPathEnd` or `makeRoom` has been called.
  @_optimize(speed)
  mutating func append(
    _ token: Token, _ details: RegistrationDetails.Address
  ) -> WaitingCall.Address {
    let call = self.call(tail)
    call.pointee.token = token
    call.pointee.previous = details.pointee.lastCall  //~ calls_not_linked
    call.pointee.details = details
    details.pointee.lastCall = tail  //~ newest_call_not_stored
    tail &+= 1
    return call
  }

  mutating func makeRoom() {
    updateKnownHead()
    if tail &- knownHead > mask { closeGaps() }
  }

  mutating func updateKnownHead() { knownHead = head.position }

  // MARK: - Taking out calls

  /// Closes the head. Afterwards, there is no gap at the head, and the head does not move while the
  /// lock is held.
  @inline(never) mutating func close() {
    head.close()
    skipGaps()
  }

  /// Takes out the oldest call. The caller can read the call until the next append.
  mutating func takeFirst() -> WaitingCall.Address? {
    close()
    if count == 0 { return nil }
    let first = call(head.position)
    head.move(to: head.position &+ 1)
    return first
  }

  /// The oldest call, or nil if the head is open or there are gaps, which is rare between two runs.
  /// The caller has made sure that a call is waiting.
  @inline(__always)
  var first: WaitingCall.Address? {
    gaps == 0 && head.isClosed ? call(head.position) : nil
  }

  /// Takes out the call returned by `first`. Opens the head at the next position, and returns it.
  mutating func openBehindFirst() -> UInt64 {
    let position = head.position &+ 1
    knownHead = position
    head.open(at: position)
    return position
  }

  /// Copies the oldest calls, and takes the first of them out of the ring.
  ///
  /// Leaves the head closed, at the position after the first call. The other copied calls can be
  /// taken out once the head has been opened. Their payloads are small and are part of the copies.
  /// A later call with a shared payload is not copied, because a fork has to find the call's
  /// reference to the payload either in the ring or in a frame. If the run took out a copied call
  /// without the lock, the reference would be in neither place.
  ///
  /// - Parameters:
  ///   - most: The maximum number of copies, at least 1.
  ///   - keepsLast: Whether to leave out the newest call unless it is also the oldest.
  /// - Returns: the end of the copies, and the position after the first call; nil if the ring is
  ///   empty.
  @inline(__always)
  mutating func takeFirst(
    _ copies: WaitingCall.Address, atMost most: UInt64, keepsLast: Bool
  ) -> (end: WaitingCall.Address, position: UInt64)? {
    head.close()
    skipGaps()
    var position = head.position
    if position == tail { return nil }
    // If there are no gaps, the newest call is in the last place before the tail. If there are
    // gaps, it may be in an earlier place, so copy only one call.
    let most = keepsLast && gaps > 0 ? 1 : min(most, tail &- position &- (keepsLast ? 1 : 0))
    copies.pointee = call(position).pointee
    position &+= 1
    head.move(to: position)
    knownHead = position
    var end = copies + 1
    if most > 1 && !copies.pointee.isShared {
      let last = copies + Int(truncatingIfNeeded: most)
      var next = position
      while end != last {
        let waiting = call(next)
        if waiting.pointee.token.isNone || waiting.pointee.isShared { break }
        end.pointee = waiting.pointee
        end += 1
        next &+= 1
      }
    }
    return (end, position)
  }

  /// Cancels all of a delegate's calls, and releases their payloads. Returns the number of calls.
  mutating func takeAll(
    of details: RegistrationDetails.Address, _ released: inout ReleasedPayloads
  ) -> UInt64 {
    close()
    let head = self.head.position
    var taken: UInt64 = 0
    var position = details.pointee.lastCall
    while position >= head {
      let call = self.call(position)
      released.release(call.pointee.sharedPayload)
      call.pointee.token = .none
      taken &+= 1
      position = call.pointee.previous
    }
    gaps &+= taken  //~ gaps_not_counted
    details.pointee.lastCall = 0
    return taken
  }

  /// Takes out all calls, and releases their payloads. Returns the number of calls.
  mutating func takeAll(_ released: inout ReleasedPayloads) -> UInt64 {
    close()
    let before = count
    while let first = takeFirst() { released.release(first.pointee.sharedPayload) }
    return before
  }

  // MARK: - Gaps

  private mutating func skipGaps() {
    if gaps > 0 { skipAllGaps() }  //~ gaps_not_skipped
  }

  private mutating func skipAllGaps() {
    var position = head.position
    while position != tail && call(position).pointee.token.isNone {
      position &+= 1
      gaps &-= 1
    }
    head.move(to: position)
  }

  /// Moves all calls to the places directly before the tail.
  private mutating func closeGaps() {
    close()
    let head = self.head.position
    var (from, to) = (tail, tail)
    while from != head {
      from &-= 1
      if call(from).pointee.token.isNone { continue }
      to &-= 1
      if to != from { call(to).pointee = call(from).pointee }
    }
    self.head.move(to: to)
    knownHead = to
    gaps = 0
    // The positions have changed, so link each delegate's calls again.
    for position in to..<tail {
      call(position).pointee.details.pointee.lastCall = 0
    }
    for position in to..<tail {
      let details = call(position).pointee.details
      call(position).pointee.previous = details.pointee.lastCall
      details.pointee.lastCall = position
    }
  }
}

/// The position of the oldest call in a ring. The thread that runs the queue moves the head
/// whenever it takes out a call. As long as the head is *open*, it does so without a lock.
///
/// The run opens the head under the queue's lock. Every other operation that takes out or changes
/// calls, or that the run must notice, closes the head under the lock. The position is then fixed
/// until the lock is released, and the run takes the lock before it takes out its next call and
/// when it ends. Positions only increase, even when the slot is reused. If runs are nested, the
/// head can be open only for the innermost one. So if a run finds the head still open at the
/// position to which the run last moved it, there has been no such operation in the meantime.
///
/// The run changes the head either with acquire and release, or under the lock. So a thread that
/// closes the head sees all stores that the run made to its frame before the run last changed the
/// head.
struct RingHead: ~Copyable {
  /// The position, shifted to the left by one bit. The lowest bit is set while the head is open.
  private let word: Atomic<UInt64>

  private static let open: UInt64 = 1

  /// The position. If the head is open, the result may already be out of date.
  // order: position
  var position: UInt64 { get { word.load(ordering: .acquiring) >> 1 } }

  // MARK: - Under the lock

  // Acquire: pairs with the release of a run that has closed the head without the lock.
  // order: position
  var isClosed: Bool { word.load(ordering: .acquiring) & Self.open == 0 }

  func close() {
    if word.load(ordering: .acquiring) & Self.open == 0 { return }  // order: position
    word.bitwiseAnd(~Self.open, ordering: .acquiringAndReleasing)  //~ head_not_closed
  }

  /// The head must be closed.
  func move(to position: UInt64) {
    word.store(position << 1, ordering: .releasing)  // order: head_under_lock
  }

  /// The head must be closed.
  func open(at position: UInt64) {
    word.store(position << 1 | Self.open, ordering: .releasing)  // order: head_under_lock
  }

  // MARK: - For the thread that runs the queue

  /// Takes out the call at this position, if the head is still open there.
  func take(at position: UInt64) -> Bool {
    replace(position << 1 | Self.open, by: (position &+ 1) << 1 | Self.open)
  }

  /// Closes the head and returns true, if it is still open at this position.
  func close(at position: UInt64) -> Bool {
    replace(position << 1 | Self.open, by: position << 1)
  }

  private func replace(_ old: UInt64, by new: UInt64) -> Bool {
    // order: head
    word.compareExchange(expected: old, desired: new, ordering: .acquiringAndReleasing).exchanged
  }
}

#if MULTICAST_INTERNAL_CHECKS
  /// The caller holds the queue's lock.
  extension CallRing {
    func check(_ check: Check) {
      // The head may be open, so the run may take out calls during this check. Such a call can
      // still be read, because no call is appended while this lock is held. Its details can be read
      // as well, because a removal of the delegate takes the lock before it frees them.
      let head = self.head.position
      let length = tail &- head
      check.that(head <= tail && length <= mask &+ 1, "calls are within the ring", head, tail)
      check.that(knownHead <= head, "the head only rises", knownHead, head)
      check.that(gaps <= length, "gaps are within the ring", gaps, length)
      if length == gaps { return }
      let count = length &- gaps
      if UInt64(Check.reach()) < length { return }

      var (calls, linked) = (UInt64(0), UInt64(0))
      for position in head..<tail {
        if !call(position).pointee.token.isNone {
          calls &+= 1
          checkCall(position, check)
          if call(position).pointee.details.pointee.lastCall == position {
            linked &+= countLinked(to: position, from: head, check)
          }
        }
      }
      check.that(calls == count, "the calls that wait are counted", calls, count)
      check.that(
        linked == count, "each call is found from the newest of its delegate", linked, count)
    }

    /// The number of a delegate's calls that can be reached by following the links from the newest.
    private func countLinked(
      to newest: UInt64, from head: UInt64, _ check: Check
    ) -> UInt64 {
      let details = call(newest).pointee.details
      var linked: UInt64 = 0
      var position = newest
      while position >= head {
        check.that(
          call(position).pointee.details == details, "linked calls are of one delegate", position,
          newest)
        check.that(
          call(position).pointee.token == call(newest).pointee.token,
          "linked calls are of one registration", position, newest)
        check.that(call(position).pointee.previous < position, "calls are linked to older ones")
        linked &+= 1
        position = call(position).pointee.previous
      }
      let hasOne = details.pointee.flags & (MULTICAST_ONCE | MULTICAST_LATEST) != 0
      check.that(
        !hasOne || linked == 1, "of a delegate with ONCE or LATEST one call waits at most", linked)
      return linked
    }

    private func checkCall(_ position: UInt64, _ check: Check) {
      let call = self.call(position).pointee
      let registration = Registration(index: call.token.index)
      check.that(
        registration.token == call.token, "a waiting call has a registration", call.token.rawValue,
        registration.token.rawValue)
      check.that(
        registration.details == call.details, "a call has the details of its registration",
        position)
      check.that(
        call.details.pointee.lastCall >= position && call.details.pointee.lastCall < tail,
        "a registration knows its newest call", position, call.details.pointee.lastCall)
      check.that(
        call.size <= UInt32(WaitingCall.inlineSize) || call.size == WaitingCall.shared,
        "a payload is small, or shared", call.size)
      guard let payload = call.sharedPayload else { return }
      let (references, calls) = (payload.referenceCount, countCalls(with: payload, from: position))
      check.that(references >= calls, "a call retains its payload", references, calls)
    }

    /// The number of calls that share this payload, among the next 16 calls in the ring. The calls
    /// of one invocation are usually close together in the ring.
    private func countCalls(with payload: Payload, from first: UInt64) -> UInt64 {
      var (calls, position) = (UInt64(0), first)
      while position != tail && position &- first < 16 {
        let call = self.call(position).pointee
        if !call.token.isNone, call.sharedPayload?.header == payload.header { calls &+= 1 }
        position &+= 1
      }
      return calls
    }
  }
#endif
