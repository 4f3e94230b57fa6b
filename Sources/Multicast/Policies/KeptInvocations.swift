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
