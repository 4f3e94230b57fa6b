import MulticastShims
import Synchronization

/// A payload, or a receipt, that the queued calls of an invocation share. It counts references.
///
/// A receipt stands for the payload, too, and detects the end of the calls that share it: see
/// `Receipt`.
struct Payload {
  typealias Release = @convention(c) (_ payload: UnsafeRawPointer?, _ size: Int) -> Void

  enum Kind: UInt8 {
    /// A copy of the caller's bytes, behind the header.
    case copied
    /// The caller's bytes: with a release function, or only passed on.
    case owned
    case receipt
    /// As `copied`, in a block of a queue's reserve.
    case reserved
  }

  struct Header: ~Copyable {
    /// The bytes that the delegates get.
    let bytes: UnsafeRawPointer?
    let size: Int
    /// The lower half: how many calls, frames and receipts retain the payload. The upper half: how
    /// many calls with it were executed.
    let references: Atomic<UInt64>
    let release: Release?
    /// The fork generation in which it was made; see `Fork.generation`.
    let process: UInt32
    let kind: Kind
    /// The next payload of a chain without references.
    var next: UnsafeMutablePointer<Header>?
  }

  /// The bytes behind the header are aligned like the block.
  static var headerSize: Int { aligned(MemoryLayout<Header>.size) }

  fileprivate static func aligned(_ size: Int) -> Int {
    (size + Allocator.usualAlignment - 1) & ~(Allocator.usualAlignment - 1)
  }

  private static let oneMade: UInt64 = 1 << 32

  let header: UnsafeMutablePointer<Header>

  init(at address: UnsafeMutableRawPointer) {
    header = address.assumingMemoryBound(to: Header.self)
  }

  init(_ header: UnsafeMutablePointer<Header>) { self.header = header }

  /// Makes a copy, which the caller retains.
  init(copying bytes: UnsafeRawPointer, size: Int) throws(Status) {
    // A `size_t`: below zero is more than there can be.
    guard size >= 0, size < .max - Self.headerSize else { throw .outOfMemory }
    let block = try Allocator.allocate(size: Self.headerSize + size)
    let copy = block + Self.headerSize
    shims_copy(copy, bytes, size)
    RaceDetector.happensBefore(copy)  // the thread that runs the queue
    self.init(block, .copied, copy, size, nil)
  }

  /// Makes a copy in a block of a reserve, which the caller retains.
  init(copying bytes: UnsafeRawPointer, size: Int, to place: UnsafeMutableRawPointer) {
    let copy = place + Self.headerSize
    shims_copy(copy, bytes, size)
    RaceDetector.happensBefore(copy)  // the thread that runs the queue
    self.init(place, .reserved, copy, size, nil)
  }

  /// Makes a payload of zeros, which the caller retains.
  init(zeros size: Int) throws(Status) {
    let block = try Allocator.allocateZeroed(size: Self.headerSize + size)
    self.init(block, .copied, block + Self.headerSize, size, nil)
  }

  /// Makes a payload of the caller's bytes, which the caller retains.
  init(owning bytes: UnsafeRawPointer?, size: Int, _ release: Release?) throws(Status) {
    let block = try Allocator.allocate(size: Self.headerSize)
    self.init(block, .owned, bytes, size, release)
  }

  /// Fills a block, with one reference.
  init(
    _ block: UnsafeMutableRawPointer, _ kind: Kind, _ bytes: UnsafeRawPointer?, _ size: Int,
    _ release: Release?
  ) {
    header = block.bindMemory(to: Header.self, capacity: 1)
    header.initialize(
      to: Header(
        bytes: bytes, size: size, references: Atomic(1), release: release,
        process: Fork.generation, kind: kind, next: nil))
  }

  var bytes: UnsafeRawPointer? { header.pointee.bytes }
  var size: Int { header.pointee.size }
  var isReceipt: Bool { header.pointee.kind == .receipt }

  // MARK: - References

  /// The numbers of references and of executed calls, at one moment.
  ///
  /// Acquire: the effects of the calls that are over happen before.
  var counts: (references: UInt32, made: UInt32) {
    let counts = header.pointee.references.load(ordering: .acquiring)  // order: calls_over
    return (UInt32(truncatingIfNeeded: counts), UInt32(truncatingIfNeeded: counts >> 32))
  }

  /// Relaxed: the caller has the payload from an owner of a reference.
  func retain() { header.pointee.references.wrappingAdd(1, ordering: .relaxed) }

  /// Removes one reference.
  ///
  /// - Returns: how many are left. If none is left, the payload is the caller's.
  func countDown(isMade: Bool) -> UInt32 {
    // Release and acquire: other threads' use of the payload happens before it is freed.
    let left = header.pointee.references.wrappingAdd(
      (isMade ? Self.oneMade : 0) &- 1, ordering: .acquiringAndReleasing  // order: references
    ).newValue
    checkInvariants(UInt32(truncatingIfNeeded: left))
    return UInt32(truncatingIfNeeded: left)
  }

  /// Removes one reference; without references, runs the release function or frees the payload. No
  /// lock is held.
  ///
  /// - Parameter isMade: Whether a call with this payload has been executed.
  func release(isMade: Bool = false) {
    var released = ReleasedPayloads()
    released.release(self, isMade: isMade)
    released.cleanUp()
  }

  /// Runs a release function of the caller's. No lock is held.
  static func release(_ bytes: UnsafeRawPointer?, _ size: Int, _ function: Release?) {
    guard let function else { return }
    let depth = shims_get_release_depth()
    shims_set_release_depth(depth &+ 1)
    CallerCode.releasing { function(bytes, size) }  //~ owned_payload_released_twice
    shims_set_release_depth(depth)
  }

  /// Frees a copy, or a payload of the caller's, that nothing retains.
  func deallocate() {
    if header.pointee.kind == .reserved { return PayloadReserve.putBack(header) }
    let inlineSize = header.pointee.kind == .copied ? size : 0
    Allocator.deallocate(header, size: Self.headerSize + inlineSize)
  }

  // MARK: - Frames

  // A frame publishes the payload that it retains: if its thread does not exist any more, another
  // thread releases the payload.

  /// The payload that a frame retains.
  init?(retainedBy frame: Frame) {
    guard let address = UnsafeMutableRawPointer(bitPattern: frame.payload) else { return nil }
    self.init(at: address)
  }

  /// Passes one reference to a frame.
  func pass(to frame: Frame) { frame.payload = UInt(bitPattern: header) }

  /// Takes over the reference that a frame has, if any.
  static func take(from frame: Frame) -> Payload? {
    // Clear the frame first: the child of a fork releases the payloads of frames.
    let payload = Payload(retainedBy: frame)
    frame.payload = 0  //~ payload_left_in_frame
    return payload
  }

  /// Releases the payload of a frame, if any.
  static func release(of frame: Frame, isMade: Bool = false) {
    take(from: frame)?.release(isMade: isMade)  //~ payload_not_released
  }
}

extension Payload {
  /// - Parameter references: The current number of references.
  func checkInvariants(
    _ references: UInt32, _ file: StaticString = #fileID, _ line: UInt = #line
  ) {
    #if MULTICAST_INTERNAL_CHECKS
      // A block that was freed and reused has a larger number, or a negative one.
      Check(file, line).that(
        references < 1 << 31, "the references to a payload are counted", references)
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    var referenceCount: UInt64 { UInt64(counts.references) }
  #endif
}

/// Payloads that were released under a lock. Their cleanup is pending until no lock is held:
/// release functions, the allocator, and wake-ups of threads that wait for calls.
struct ReleasedPayloads {
  /// Payloads without references.
  private var first: UnsafeMutablePointer<Payload.Header>? = nil
  /// The address of a receipt whose calls are over, or 0.
  private var finishedReceipt: UInt = 0
  /// Whether there are several receipts.
  private var hasFinishedReceipts = false

  var isEmpty: Bool { first == nil && finishedReceipt == 0 }

  /// Removes one reference. A lock may be held.
  mutating func release(_ payload: Payload?, isMade: Bool = false) {
    if let payload { countDown(payload, isMade: isMade) }
  }

  @inline(never)
  private mutating func countDown(_ payload: Payload, isMade: Bool) {
    // Read before the last reference goes: a thread that finds the calls over frees the receipt.
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

  /// Makes the pending cleanup. No lock is held.
  mutating func cleanUp() {
    if !isEmpty { cleanUpAll() }
  }

  @inline(never)
  private mutating func cleanUpAll() {
    // The wake-ups first: a release function may take its time.
    wakeWaiters()
    while let header = first {
      first = header.pointee.next
      cleanUpOne(Payload(header))
    }
    wakeWaiters()
  }

  private mutating func wakeWaiters() {
    if finishedReceipt == 0 { return }
    //~ waiter_not_woken
    Waits.wake(hasFinishedReceipts ? nil : UInt64(finishedReceipt))
    finishedReceipt = 0
    hasFinishedReceipts = false
  }

  private mutating func cleanUpOne(_ payload: Payload) {
    if payload.isReceipt {
      let previous = Receipt(payload).previous
      Receipt(payload).deallocate()
      return release(previous)  //~ previous_not_released
    }
    let (bytes, size) = (payload.bytes, payload.size)
    let release = payload.header.pointee.release
    // In the child of a fork: the payload is the parent's, which releases it.
    let isOurs = payload.header.pointee.process == Fork.generation  //~ parents_payload_released
    payload.deallocate()
    if isOurs { Payload.release(bytes, size, release) }  //~ payload_released_under_lock
  }
}

/// Memory for the payloads of a queue: blocks of one size, in one allocation.
///
/// A payload may live longer than the queue: a call with it runs, or it waits in another queue. So
/// the reserve counts the blocks that are in use, and the queue as one more. Its lock is that of
/// the queue's slot, whatever the occupant: a fork holds it, too.
struct PayloadReserve {
  /// At the beginning of the allocation.
  struct Header: ~Copyable {
    var firstVacant: UnsafeMutablePointer<Block>?
    var references: Int
    /// The most bytes of a payload.
    let payloadSize: Int
    let byteCount: Int
    /// Nil until the queue exists.
    var lock: Lock?
  }

  /// Before each payload.
  struct Block {
    let reserve: Address
    var next: UnsafeMutablePointer<Block>?
  }

  typealias Address = UnsafeMutablePointer<Header>

  /// So many payloads more than there is room for calls: those of calls that run, and of
  /// invocations that have not queued their calls yet.
  private static let moreThanCalls = 8
  private static let headerSize = 48

  private let header: Address

  init(_ header: Address) { self.header = header }

  init(payloadSize: Int, capacity: Int) throws(Status) {
    let stride =
      MemoryLayout<Block>.stride + Payload.headerSize + Payload.aligned(payloadSize)
    let count = capacity + Self.moreThanCalls
    let byteCount = Self.headerSize + count * stride
    let memory = try Allocator.allocate(size: byteCount)
    // All pages are written to: so they are there when they are needed.
    shims_zero(memory, byteCount)  //~ pages_not_written
    header = memory.bindMemory(to: Header.self, capacity: 1)
    header.initialize(
      to: Header(
        firstVacant: nil, references: 1, payloadSize: payloadSize, byteCount: byteCount,
        lock: nil))
    var offset = byteCount
    while offset > Self.headerSize {
      offset -= stride
      let block = (memory + offset).bindMemory(to: Block.self, capacity: 1)
      block.initialize(to: Block(reserve: header, next: header.pointee.firstVacant))
      header.pointee.firstVacant = block
    }
  }

  /// Called once, by the queue that uses it from then on.
  func start(with lock: Lock) -> Address {
    header.pointee.lock = lock
    return header
  }

  /// A place for a payload with its header. The lock is held.
  ///
  /// - Returns: nil if the payload is too large, or if all places are in use.
  func take(for size: Int) -> UnsafeMutableRawPointer? {
    guard size >= 0, size <= header.pointee.payloadSize, let block = header.pointee.firstVacant
    else { return nil }
    header.pointee.firstVacant = block.pointee.next
    header.pointee.references += 1  //~ reserve_not_retained
    return UnsafeMutableRawPointer(block + 1)
  }

  /// Puts back the place of a payload that nothing retains. No lock is held.
  static func putBack(_ payload: UnsafeMutablePointer<Payload.Header>) {
    let block = UnsafeMutableRawPointer(payload).assumingMemoryBound(to: Block.self) - 1
    PayloadReserve(block.pointee.reserve).release(block)
  }

  /// Called when the queue does not use it any more. No lock is held.
  func end() { release(nil) }

  private func release(_ block: UnsafeMutablePointer<Block>?) {
    let lock = header.pointee.lock.unsafelyUnwrapped
    lock.lock()
    if let block {
      block.pointee.next = header.pointee.firstVacant
      header.pointee.firstVacant = block  //~ block_not_put_back
    }
    header.pointee.references -= 1
    let isUnused = header.pointee.references == 0
    lock.unlock()
    if isUnused { deallocate() }
  }

  func deallocate() {
    Allocator.deallocate(header, size: header.pointee.byteCount)
  }
}
