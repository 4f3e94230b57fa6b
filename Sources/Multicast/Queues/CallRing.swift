/// The calls that wait in a queue, oldest first: a ring of fixed size. The queue's lock is held.
///
/// Positions only rise. The low bits of a position are its place in the ring. Each registration has
/// the position of its newest call, and each call has that of the one before it. So the calls of
/// one delegate are found without looking at all calls. A call that is taken back leaves a gap.
struct CallRing {
  private(set) var calls: UnsafeMutablePointer<WaitingCall>? = nil
  private(set) var mask: UInt64 = 0
  /// The position of the oldest call. Calls at lower positions are gone.
  private(set) var head: UInt64 = 1
  private(set) var tail: UInt64 = 1
  /// How many calls wait: all from head to tail, except the gaps.
  private(set) var count: UInt64 = 0

  private static let alignment = 64

  init() {}

  /// Has half as many places more than calls can wait, for gaps. So gaps are seldom closed.
  ///
  /// - Returns: nil if out of memory.
  init?(capacity: UInt32) {
    var size: UInt64 = 2
    while size < UInt64(capacity) + UInt64(capacity) / 2 { size *= 2 }
    mask = size - 1
    guard let block = Allocator.allocate(size: byteCount, alignment: Self.alignment) else {
      return nil
    }
    calls = block.bindMemory(to: WaitingCall.self, capacity: Int(size))
  }

  private var byteCount: Int { Int(mask + 1) * MemoryLayout<WaitingCall>.stride }

  func deallocate() {
    guard let calls else { return }
    Allocator.deallocate(calls, size: byteCount, alignment: Self.alignment)
  }

  @inline(__always)
  func call(_ position: UInt64) -> UnsafeMutablePointer<WaitingCall> {
    calls.unsafelyUnwrapped + Int(truncatingIfNeeded: position & mask)
  }

  /// The newest waiting call of a delegate.
  func newest(of details: UnsafeMutablePointer<RegistrationDetails>) -> UnsafeMutablePointer<
    WaitingCall
  >? {
    let position = details.pointee.lastCall
    return position < head ? nil : call(position)
  }

  // MARK: - In and out

  /// Appends a call without its payload, which the caller sets. Fewer calls wait than the capacity.
  mutating func append(
    _ token: Token, _ details: UnsafeMutablePointer<RegistrationDetails>
  ) -> UnsafeMutablePointer<WaitingCall> {
    if tail &- head > mask { closeGaps() }
    let call = self.call(tail)
    call.pointee.token = token
    call.pointee.previous = details.pointee.lastCall  //~ calls_not_linked
    call.pointee.details = details
    details.pointee.lastCall = tail  //~ newest_call_not_stored
    tail &+= 1
    count &+= 1
    return call
  }

  /// Takes out the oldest call. It can be read until the next append.
  mutating func takeFirst() -> UnsafeMutablePointer<WaitingCall>? {
    if count == 0 { return nil }
    let first = call(head)
    head &+= 1
    count &-= 1  //~ call_not_counted_out
    skipGaps()
    return first
  }

  /// Takes out all calls of a delegate, and releases their payloads.
  ///
  /// - Returns: how many there were.
  mutating func takeAll(
    of details: UnsafeMutablePointer<RegistrationDetails>, _ released: inout ReleasedPayloads
  ) -> UInt64 {
    let before = count
    var position = details.pointee.lastCall
    while position >= head {
      let call = self.call(position)
      released.release(call.pointee.sharedPayload)
      call.pointee.token = .none
      count &-= 1
      position = call.pointee.previous
    }
    details.pointee.lastCall = 0
    skipGaps()  //~ gaps_not_skipped
    return before &- count
  }

  /// Takes out all calls, and releases their payloads.
  mutating func takeAll(_ released: inout ReleasedPayloads) -> UInt64 {
    let before = count
    while let first = takeFirst() { released.release(first.pointee.sharedPayload) }
    return before
  }

  // MARK: - Gaps

  /// The oldest call is never a gap.
  private mutating func skipGaps() {
    if count == 0 { head = tail }
    while head != tail && call(head).pointee.token.isNone { head &+= 1 }
  }

  /// Moves all calls up to the newest.
  private mutating func closeGaps() {
    var (from, to) = (tail, tail)
    while from != head {
      from &-= 1
      if call(from).pointee.token.isNone { continue }
      to &-= 1
      if to != from { call(to).pointee = call(from).pointee }
    }
    head = to
    // The positions have changed: link the calls of each delegate again.
    var position = head
    while position != tail {
      call(position).pointee.details.pointee.lastCall = 0
      position &+= 1
    }
    position = head
    while position != tail {
      let details = call(position).pointee.details
      call(position).pointee.previous = details.pointee.lastCall
      details.pointee.lastCall = position
      position &+= 1
    }
  }
}
