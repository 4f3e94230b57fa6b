/// The calls that wait in a queue, oldest first: a ring of fixed size. The queue's lock is held.
///
/// Positions only rise, and where a position stands in the ring follows from its low bits. Each
/// delegate knows the position of its newest call, and each call that of the one before it, so that
/// those of one delegate are found without looking at all. What is taken back leaves a gap.
struct CallRing {
  private(set) var calls: UnsafeMutablePointer<WaitingCall>? = nil
  private(set) var mask: UInt64 = 0
  /// The position of the oldest call; a position below it is that of a call that is gone.
  private(set) var head: UInt64 = 1
  private(set) var tail: UInt64 = 1
  /// How many wait: those from head to tail but for the gaps.
  private(set) var count: UInt64 = 0

  private static let alignment = 64

  init() {}

  /// At least half as many places as calls can wait are left for gaps, so closing them is rare.
  ///
  /// - Returns: nil when out of memory.
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
  func newest(of extras: UnsafeMutablePointer<Extras>) -> UnsafeMutablePointer<WaitingCall>? {
    let position = extras.pointee.lastCall
    return position < head ? nil : call(position)
  }

  // MARK: - In and out

  /// Takes in a call without its payload, which is the caller's to fill in. There is room: less
  /// than the capacity wait.
  mutating func append(
    _ token: UInt64, _ extras: UnsafeMutablePointer<Extras>
  ) -> UnsafeMutablePointer<WaitingCall> {
    if tail &- head > mask { closeGaps() }
    let call = self.call(tail)
    call.pointee.token = token
    call.pointee.previous = extras.pointee.lastCall
    call.pointee.extras = extras
    extras.pointee.lastCall = tail
    tail &+= 1
    count &+= 1
    return call
  }

  /// Takes out the oldest call, which can be read until the next is taken in.
  mutating func takeFirst() -> UnsafeMutablePointer<WaitingCall>? {
    if count == 0 { return nil }
    let first = call(head)
    head &+= 1
    count &-= 1
    skipGaps()
    return first
  }

  /// Takes out all calls of a delegate.
  ///
  /// - Returns: how many those were.
  mutating func takeAll(of extras: UnsafeMutablePointer<Extras>) -> UInt64 {
    let before = count
    var position = extras.pointee.lastCall
    while position >= head {
      let call = self.call(position)
      call.pointee.sharedPayload?.letGo()
      call.pointee.token = 0
      count &-= 1
      position = call.pointee.previous
    }
    extras.pointee.lastCall = 0
    skipGaps()
    return before &- count
  }

  mutating func takeAll() -> UInt64 {
    let before = count
    while let first = takeFirst() { first.pointee.sharedPayload?.letGo() }
    return before
  }

  // MARK: - Gaps

  /// The oldest call is never a gap.
  private mutating func skipGaps() {
    if count == 0 { head = tail }
    while head != tail && call(head).pointee.token == 0 { head &+= 1 }
  }

  /// Moves all calls up to the newest.
  private mutating func closeGaps() {
    var (from, to) = (tail, tail)
    while from != head {
      from &-= 1
      if call(from).pointee.token == 0 { continue }
      to &-= 1
      if to != from { call(to).pointee = call(from).pointee }
    }
    head = to
    // Their positions have changed: link those of each delegate anew.
    var position = head
    while position != tail {
      call(position).pointee.extras.pointee.lastCall = 0
      position &+= 1
    }
    position = head
    while position != tail {
      let extras = call(position).pointee.extras
      call(position).pointee.previous = extras.pointee.lastCall
      extras.pointee.lastCall = position
      position &+= 1
    }
  }
}
