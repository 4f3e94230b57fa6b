import MulticastShims

/// Payloads that were released under a lock. What is due for them is done when no lock is held:
/// release functions, an allocator, and threads that wait for calls.
struct ReleasedPayloads {
  /// Payloads that nothing retains any more.
  private var first: UnsafeMutablePointer<Payload.Header>? = nil
  /// The address of a receipt whose calls are over, or 0.
  private var finishedReceipt: UInt = 0
  /// Whether there are several.
  private var hasFinishedReceipts = false

  var isEmpty: Bool {
    @inline(__always) get { first == nil && finishedReceipt == 0 }
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
    if isReceipt && left == Receipt.ownReferences {
      hasFinishedReceipts = finishedReceipt != 0
      finishedReceipt = UInt(bitPattern: payload.header)
    }
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
    if finishedReceipt == 0 { return }
    //~ waiter_not_woken
    if hasFinishedReceipts { Waits.wake() } else { Waits.wake(UInt64(finishedReceipt)) }
    finishedReceipt = 0
    hasFinishedReceipts = false
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
