import MulticastShims
import Synchronization

/// A payload or a receipt that the queued calls of an invocation share. It counts its references.
///
/// A receipt refers to the payload, and also detects the end of the calls that share it: see
/// `Receipt`.
struct Payload {
  typealias Release = @convention(c) (_ payload: UnsafeRawPointer?, _ size: Int) -> Void

  enum Kind: UInt8 {
    /// A copy of the caller's bytes, which follows the header.
    case copied
    /// The caller's own bytes, which either have a release function or are only passed on.
    case owned
    case receipt
    /// A payload together with the name that was notified: see `init(_:named:)`.
    case named
    /// A copy as with `copied`, but in a block of a queue's reserve.
    case reserved
  }

  struct Header: ~Copyable {
    /// The bytes that the delegates get.
    let bytes: UnsafeRawPointer?
    let size: Int
    /// The lower half is the number of calls, frames and receipts that retain the payload. The
    /// upper half is the number of calls with this payload that were executed.
    let references: Atomic<UInt64>
    let release: Release?
    /// The fork generation in which the payload was made: see `Fork.generation`.
    let process: UInt32
    let kind: Kind
    /// The next payload in a list of payloads whose reference count has dropped to zero.
    var next: UnsafeMutablePointer<Header>?
  }

  /// The bytes behind the header are aligned like the block.
  static var headerSize: Int { aligned(MemoryLayout<Header>.size) }

  fileprivate static func aligned(_ size: Int) -> Int {
    (size + Allocator.usualAlignment - 1) & ~(Allocator.usualAlignment - 1)
  }

  private static var oneMade: UInt64 { 1 << 32 }

  let header: UnsafeMutablePointer<Header>

  init(at address: UnsafeMutableRawPointer) {
    header = address.assumingMemoryBound(to: Header.self)
  }

  init(_ header: UnsafeMutablePointer<Header>) { self.header = header }

  /// Makes a copy, which the caller retains.
  init(copying bytes: UnsafeRawPointer, size: Int) throws(Status) {
    // The size is a `size_t`, so a negative value stands for a number that is too large.
    guard size >= 0, size < .max - Self.headerSize else { throw .outOfMemory }
    let block = try Allocator.allocate(size: Self.headerSize + size)
    let copy = block + Self.headerSize
    shims_copy(copy, bytes, size)
    RaceDetector.happensBefore(copy)  // acquired by the thread that runs the queue
    self.init(block, .copied, copy, size, nil)
  }

  /// Makes a copy in a block of a reserve, which the caller retains.
  init(copying bytes: UnsafeRawPointer, size: Int, to place: UnsafeMutableRawPointer) {
    let copy = place + Self.headerSize
    shims_copy(copy, bytes, size)
    RaceDetector.happensBefore(copy)  // acquired by the thread that runs the queue
    self.init(place, .reserved, copy, size, nil)
  }

  /// Makes a payload of zeros, which the caller retains.
  init(zeros size: Int) throws(Status) {
    let block = try Allocator.allocateZeroed(size: Self.headerSize + size)
    self.init(block, .copied, block + Self.headerSize, size, nil)
  }

  /// Makes a payload from the caller's own bytes, which the caller retains.
  init(owning bytes: UnsafeRawPointer?, size: Int, _ release: Release?) throws(Status) {
    let block = try Allocator.allocate(size: Self.headerSize)
    self.init(block, .owned, bytes, size, release)
  }

  /// Initializes the header in a block, with one reference.
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

  // MARK: - Chains

  /// Makes a payload with a name, which takes over one reference to a payload.
  init(_ payload: Payload, named name: UnsafePointer<CChar>) throws(Status) {
    let block = try Allocator.allocate(size: Self.sizeOfNamed(name))
    (block + Self.headerSize).storeBytes(of: payload, as: Payload.self)
    shims_copy(block + Self.nameOffset, name, Self.sizeOfNamed(name) - Self.nameOffset)
    RaceDetector.happensBefore(block)  // the thread that runs the queue
    self.init(block, .named, payload.bytes, payload.size, nil)
  }

  private static var nameOffset: Int { headerSize + MemoryLayout<Payload>.stride }

  private static func sizeOfNamed(_ name: UnsafePointer<CChar>) -> Int {
    nameOffset + shims_length(name, .max) + 1
  }

  /// The payload or receipt that a receipt, or a payload with a name, retains.
  var previous: Payload? {
    guard isReceipt || header.pointee.kind == .named else { return nil }
    return (UnsafeRawPointer(header) + Self.headerSize).load(as: Payload.self)
  }

  /// The name that was notified, if it has one.
  var name: UnsafePointer<CChar>? {
    if header.pointee.kind != .named { return isReceipt ? previous?.name : nil }
    return (UnsafeRawPointer(header) + Self.nameOffset).assumingMemoryBound(to: CChar.self)
  }

  // MARK: - References

  /// The number of references and the number of executed calls at one moment.
  ///
  /// Acquire: the effects of the finished calls happen before the caller continues.
  var counts: (references: UInt32, made: UInt32) {
    let counts = header.pointee.references.load(ordering: .acquiring)  // order: calls_over
    return (UInt32(truncatingIfNeeded: counts), UInt32(truncatingIfNeeded: counts >> 32))
  }

  /// Relaxed is enough: the caller got the payload from the owner of a reference.
  func retain() { header.pointee.references.wrappingAdd(1, ordering: .relaxed) }

  /// Removes one reference.
  ///
  /// - Returns: how many references are left. If none is left, the caller owns the payload.
  func countDown(isMade: Bool) -> UInt32 {
    // Release and acquire: every use of the payload by other threads happens before it is freed.
    let left = header.pointee.references.wrappingAdd(
      (isMade ? Self.oneMade : 0) &- 1, ordering: .acquiringAndReleasing  // order: references
    ).newValue
    checkInvariants(UInt32(truncatingIfNeeded: left))
    return UInt32(truncatingIfNeeded: left)
  }

  /// Removes one reference. If it was the last one, frees the payload and runs its release
  /// function. No lock is held.
  ///
  /// - Parameter isMade: Whether a call with this payload has been executed.
  func release(isMade: Bool = false) {
    var released = ReleasedPayloads()
    released.release(self, isMade: isMade)
    released.cleanUp()
  }

  /// Runs a release function that the caller supplied. No lock is held.
  static func release(_ bytes: UnsafeRawPointer?, _ size: Int, _ function: Release?) {
    guard let function else { return }
    let depth = shims_get_release_depth()
    shims_set_release_depth(depth &+ 1)
    CallerCode.releasing { function(bytes, size) }  //~ owned_payload_released_twice
    shims_set_release_depth(depth)
  }

  /// Frees the block of a payload that nothing retains. The caller's own bytes are not freed.
  func deallocate() {
    if header.pointee.kind == .reserved { return PayloadReserve.putBack(header) }
    if isReceipt { return Receipt(self).deallocate() }
    if let name { return Allocator.deallocate(header, size: Self.sizeOfNamed(name)) }
    let inlineSize = header.pointee.kind == .copied ? size : 0
    Allocator.deallocate(header, size: Self.headerSize + inlineSize)
  }

  // MARK: - Frames

  // A frame publishes the payload that it retains. If the thread of the frame no longer exists,
  // another thread releases the payload.

  /// The payload that a frame retains; nil if there is none.
  init?(retainedBy frame: Frame) {
    guard let address = UnsafeMutableRawPointer(bitPattern: frame.payload) else { return nil }
    self.init(at: address)
  }

  /// Passes one reference to a frame.
  func pass(to frame: Frame) { frame.payload = UInt(bitPattern: header) }

  /// Takes over the reference that a frame has, if any.
  static func take(from frame: Frame) -> Payload? {
    // Clear the frame first: in the child of a fork, the payloads of frames are released.
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

/// Payloads that were released under a lock. Their cleanup waits until no lock is held: it frees
/// memory, runs release functions and wakes threads that wait for calls.
struct ReleasedPayloads {
  /// A chain of payloads without references.
  private var first: UnsafeMutablePointer<Payload.Header>? = nil
  /// The address of a receipt whose calls are over, or 0.
  private var finishedReceipt: UInt = 0
  /// Whether there is more than one such receipt.
  private var hasFinishedReceipts = false

  var isEmpty: Bool { first == nil && finishedReceipt == 0 }

  /// Removes one reference. A lock may be held.
  mutating func release(_ payload: Payload?, isMade: Bool = false) {
    if let payload { countDown(payload, isMade: isMade) }
  }

  @inline(never)
  private mutating func countDown(_ payload: Payload, isMade: Bool) {
    // Read this first: once the reference is removed, the waiting thread may free the receipt.
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

  /// Performs the pending cleanup. No lock is held.
  mutating func cleanUp() {
    if !isEmpty { cleanUpAll() }
  }

  @inline(never)
  private mutating func cleanUpAll() {
    // Wake the threads first, because a release function may take a long time.
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
    if let previous = payload.previous {
      payload.deallocate()
      return release(previous)  //~ previous_not_released
    }
    let (bytes, size) = (payload.bytes, payload.size)
    let release = payload.header.pointee.release
    // In the child of a fork, a payload that the parent made is released by the parent.
    let isOurs = payload.header.pointee.process == Fork.generation  //~ parents_payload_released
    payload.deallocate()
    if isOurs { Payload.release(bytes, size, release) }  //~ payload_released_under_lock
  }
}

/// Memory for the payloads of a queue: blocks of one size, in one allocation.
///
/// A payload may live longer than the queue, because a call with it may be running or waiting in
/// another queue. So the reserve counts the blocks in use, plus one for the queue itself. It uses
/// the lock of the queue's slot, even after the slot has been reused. A fork holds that lock, too.
struct PayloadReserve {
  /// The header at the beginning of the allocation.
  struct Header: ~Copyable {
    var firstVacant: UnsafeMutablePointer<Block>?
    var references: Int
    /// The largest size of a payload.
    let payloadSize: Int
    let byteCount: Int
    /// Nil until the queue exists.
    var lock: Lock?
  }

  /// The header before each payload.
  struct Block {
    let reserve: Address
    var next: UnsafeMutablePointer<Block>?

    /// The distance to the payload, which is aligned like the allocation.
    static var headerSize: Int { Payload.aligned(MemoryLayout<Block>.size) }
  }

  typealias Address = UnsafeMutablePointer<Header>

  /// The number of payloads beyond the capacity of the queue. They are for calls that are running,
  /// and for invocations that have not queued their calls yet.
  private static let moreThanCalls = 8
  private static let headerSize = 48

  private let header: Address

  init(_ header: Address) { self.header = header }

  init(payloadSize: Int, capacity: Int) throws(Status) {
    let stride =
      Block.headerSize + Payload.headerSize + Payload.aligned(payloadSize)
    let count = capacity + Self.moreThanCalls
    try Allocator.checkSize(count: UInt64(truncatingIfNeeded: count), stride: stride)
    let byteCount = Self.headerSize + count * stride
    let memory = try Allocator.allocate(size: byteCount)
    // Writing to all pages makes the system supply them now, and not when they are first needed.
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

  /// Called once, by the queue that uses the reserve from then on.
  func start(with lock: Lock) -> Address {
    header.pointee.lock = lock
    return header
  }

  /// Takes a place for a payload with its header. The lock is held.
  ///
  /// - Returns: nil if the payload is too large or all places are in use.
  func take(for size: Int) -> UnsafeMutableRawPointer? {
    guard size >= 0, size <= header.pointee.payloadSize, let block = header.pointee.firstVacant
    else { return nil }
    header.pointee.firstVacant = block.pointee.next
    header.pointee.references += 1  //~ reserve_not_retained
    return UnsafeMutableRawPointer(block) + Block.headerSize
  }

  /// Puts back the place of a payload that nothing retains. No lock is held.
  static func putBack(_ payload: UnsafeMutablePointer<Payload.Header>) {
    let block = (UnsafeMutableRawPointer(payload) - Block.headerSize)
      .assumingMemoryBound(to: Block.self)
    PayloadReserve(block.pointee.reserve).release(block)
  }

  /// Called when the queue no longer uses the reserve. No lock is held.
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
