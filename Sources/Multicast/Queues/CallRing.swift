import MulticastHeader
import Synchronization

/// The calls that wait in a queue, oldest first: a ring of fixed size. The queue's lock is held.
///
/// Positions only rise. The low bits of a position are its place in the ring. Each registration
/// stores the position of its newest call, and each call stores the position of the previous call
/// of the same registration. So the calls of one delegate are found without a search through all
/// calls. A cancelled call leaves a gap, which is a place without a call.
///
/// The thread that runs the queue takes out the oldest calls without the lock as long as the head
/// is open: see `RingHead`. It works on copies of the calls and does not read the ring. Every other
/// operation that takes out or changes a call closes the head first.
struct CallRing: ~Copyable {
  private var places: Places
  private(set) var tail: UInt64
  /// The first position of the current queue of the slot.
  private var begin: UInt64
  /// The number of places between head and tail that have no call.
  private(set) var gaps: UInt64
  /// An earlier position of the head. Reading the head itself would take its cache line from the
  /// thread that runs the queue.
  private(set) var knownHead: UInt64
  // The padding before and after the head gives it a cache line of its own.
  private let before: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)
  /// The position of the oldest call. The calls at lower positions have been taken out.
  let head: RingHead
  private let after: (UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64)

  struct Places {
    fileprivate var calls: WaitingCall.Address? = nil
    fileprivate var mask: UInt64 = 0

    private static let alignment = 64

    fileprivate init() {}

    /// Allocates places for the capacity and half as much again, so that gaps rarely fill the ring.
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

  /// Begins to use places. Positions continue from those of the last queue in the slot.
  mutating func start(with places: Places) {
    self.places = places
    tail = max(head.position, 1)
    begin = tail
    gaps = 0
    knownHead = tail
    head.move(to: tail)
  }

  /// Ends the use of the places, and returns them. The ring has no calls.
  mutating func end() -> Places {
    let places = self.places
    self.places = Places()
    return places
  }

  var mask: UInt64 { places.mask }

  func call(_ position: UInt64) -> WaitingCall.Address {
    places.calls.unsafelyUnwrapped + Int(truncatingIfNeeded: position & places.mask)
  }

  /// The number of waiting calls: all places from head to tail, except the gaps.
  var count: UInt64 { get { tail &- head.position &- gaps } }

  /// The number of waiting calls or more, computed without reading the head.
  var countAtMost: UInt64 { get { tail &- knownHead &- gaps } }

  /// How many calls were ever appended.
  var appended: UInt64 { tail &- begin }

  /// The newest waiting call of a delegate; nil if none waits.
  func newest(of details: RegistrationDetails.Address) -> WaitingCall.Address? {
    let position = details.pointee.lastCall
    return position < head.position ? nil : call(position)
  }

  // MARK: - In

  /// Appends a call without its payload, which the caller sets. Fewer calls wait than the capacity
  /// allows, and there is a place: the tail is below `fastPathEnd`, or `makeRoom` was called.
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

  // MARK: - Out

  /// Closes the head. It does not move while the lock is held, and the oldest place is not a gap.
  @inline(never) mutating func close() {
    head.close()
    skipGaps()
  }

  /// Takes out the oldest call. The call can be read until the next append.
  mutating func takeFirst() -> WaitingCall.Address? {
    close()
    if count == 0 { return nil }
    let first = call(head.position)
    head.move(to: head.position &+ 1)
    return first
  }

  /// The oldest call, provided that a call waits. Nil if the head is open or there are gaps, which
  /// is rare between two runs.
  @inline(__always)
  var first: WaitingCall.Address? {
    gaps == 0 && head.isClosed ? call(head.position) : nil
  }

  /// Takes out the call that `first` returned, and opens the head behind it.
  ///
  /// - Returns: the new position.
  mutating func openBehindFirst() -> UInt64 {
    let position = head.position &+ 1
    knownHead = position
    head.open(at: position)
    return position
  }

  /// Copies the oldest calls, and takes out the first of them.
  ///
  /// The head is left closed, behind the first call. The other copied calls can be taken out once
  /// the head is opened. Their payloads are small and part of the copies. If a call with a shared
  /// payload were taken out like this, a fork would find its reference neither in the ring nor in a
  /// frame.
  ///
  /// - Parameters:
  ///   - most: The highest number of calls to copy, at least 1.
  ///   - keepsLast: Whether the newest call may be copied only if it is the first one.
  /// - Returns: the end of the copies, and the position behind the first call; nil if no call
  ///   waits.
  @inline(__always)
  mutating func takeFirst(
    _ copies: WaitingCall.Address, atMost most: UInt64, keepsLast: Bool
  ) -> (end: WaitingCall.Address, position: UInt64)? {
    head.close()
    skipGaps()
    var position = head.position
    if position == tail { return nil }
    // The newest call is in the last place, unless there are gaps.
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

  /// Cancels all calls of a delegate, and releases their payloads.
  ///
  /// - Returns: how many calls there were.
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

  /// Takes out all calls, and releases their payloads. Returns how many calls there were.
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

  /// Moves all calls up, so that they occupy the places before the tail.
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
    // The positions have changed, so link the calls of each delegate again.
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

/// The position of the oldest call in a ring. The thread that runs the queue moves the head for
/// each call that it takes out, without a lock as long as the head is *open*.
///
/// The run opens the head under the queue's lock. Any other operation that takes out or changes
/// calls, or that the run must notice, closes the head under the lock. From then on the
/// position is fixed until the lock is released, and the run takes the lock before it takes out its
/// next call and at its end. Positions only rise, even when the slot is reused, and among nested
/// runs only the innermost one can have the head open. So if a run finds the head open at its own
/// last position, no other operation has required its attention since.
///
/// The run changes the head with acquire and release, or under the lock. So a thread that closes
/// the head sees the stores that the run made in its frame before its last change of the head.
struct RingHead: ~Copyable {
  /// The position. The lowest bit is set while the head is open.
  private let word: Atomic<UInt64>

  private static let open: UInt64 = 1

  /// The position. While the head is open, the position may have moved on already.
  // order: position
  var position: UInt64 { get { word.load(ordering: .acquiring) >> 1 } }

  // MARK: - Under the lock

  // Acquire: pairs with the release of a run that closed the head without the lock.
  // order: position
  var isClosed: Bool { word.load(ordering: .acquiring) & Self.open == 0 }

  func close() {
    if word.load(ordering: .acquiring) & Self.open == 0 { return }  // order: position
    word.bitwiseAnd(~Self.open, ordering: .acquiringAndReleasing)  //~ head_not_closed
  }

  /// Sets the position of a closed head.
  func move(to position: UInt64) {
    word.store(position << 1, ordering: .releasing)  // order: head_under_lock
  }

  /// Opens a closed head at a position.
  func open(at position: UInt64) {
    word.store(position << 1 | Self.open, ordering: .releasing)  // order: head_under_lock
  }

  // MARK: - For the thread that runs the queue

  /// Takes out the call at this position, if the head is still open there.
  func take(at position: UInt64) -> Bool {
    replace(position << 1 | Self.open, by: (position &+ 1) << 1 | Self.open)
  }

  /// Closes the head if it is still open at this position.
  ///
  /// - Returns: whether it was open there.
  func close(at position: UInt64) -> Bool {
    replace(position << 1 | Self.open, by: position << 1)
  }

  private func replace(_ old: UInt64, by new: UInt64) -> Bool {
    // order: head
    word.compareExchange(expected: old, desired: new, ordering: .acquiringAndReleasing).exchanged
  }
}

#if MULTICAST_INTERNAL_CHECKS
  /// The queue's lock is held.
  extension CallRing {
    func check(_ check: Check) {
      // The head may be open. A call that is taken out now can still be read: nothing is appended
      // under this lock, and a removal of its delegate takes the lock before it frees the details.
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

    /// How many calls of a delegate are linked from its newest one.
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

    /// How many of the next 16 calls share this payload. The calls of one invocation are usually
    /// close to each other in the ring.
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
