import MulticastShims

/// Payloads that were released under a lock. What is due for them is done when no lock is held:
/// release functions, an allocator, and threads that wait for calls.
struct ReleasedPayloads {
  /// Payloads that nothing retains any more.
  private var first: UnsafeMutablePointer<Payload.Header>? = nil
  /// Whether the calls of a receipt are over.
  private var hasFinishedReceipt = false

  var isEmpty: Bool {
    @inline(__always) get { first == nil && !hasFinishedReceipt }
  }

  /// Removes one reference. A lock may be held.
  @inline(__always)
  mutating func release(_ payload: Payload?, isMade: Bool = false) {
    if let payload { countDown(payload, isMade: isMade) }
  }

  @inline(never)
  private mutating func countDown(_ payload: Payload, isMade: Bool) {
    // Read before: a thread that finds the calls over frees the receipt.
    let isReceipt = payload.isReceipt
    let left = payload.countDown(isMade: isMade)
    if isReceipt && left == Receipt.ownReferences { hasFinishedReceipt = true }
    if left > 0 { return }
    payload.header.pointee.next = first
    first = payload.header
  }

  /// Does what is due. No lock is held.
  @inline(__always)
  mutating func finish() {
    if !isEmpty { finishAll() }
  }

  @inline(never)
  private mutating func finishAll() {
    // First: a release function may take its time.
    wakeWaiters()
    while let header = first {
      first = header.pointee.next
      finishOne(Payload(header))
    }
    wakeWaiters()
  }

  private mutating func wakeWaiters() {
    if hasFinishedReceipt { Waits.wake() }  //~ waiter_not_woken
    hasFinishedReceipt = false
  }

  private mutating func finishOne(_ payload: Payload) {
    if payload.isReceipt {
      let previous = Receipt(payload).previous
      Receipt(payload).deallocate()
      return release(previous)  //~ previous_not_released
    }
    let (bytes, size) = (payload.bytes, payload.size)
    let release = payload.header.pointee.release
    // In the child of a fork: it is the parent's, which releases it.
    let isOurs = payload.header.pointee.process == Fork.generation  //~ parents_payload_released
    payload.deallocate()
    if isOurs { Payload.release(bytes, size, release) }  //~ payload_released_under_lock
  }
}
