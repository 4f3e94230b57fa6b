import MulticastShims
import Synchronization

/// A reference-counted payload or receipt (see `Receipt`), shared by the queued calls of an
/// invocation.
struct Payload {
  typealias Release = @convention(c) (_ payload: UnsafeRawPointer?, _ size: Int) -> Void

  enum Kind: UInt8 {
    /// A copy of the caller's bytes, which follows the header.
    case copied
    /// The caller's own bytes, which are passed on without being copied. If the caller has supplied
    /// a release function, the library calls it for these bytes.
    case owned
    case receipt
    /// A payload together with the notified name (see `init(_:named:)`).
    case named
    /// A copy like `copied`, but in a block of a queue's reserve.
    case reserved
  }

  struct Header: ~Copyable {
    /// The bytes that delegates receive.
    let bytes: UnsafeRawPointer?
    let size: Int
    /// The lower half counts the calls, frames and receipts that retain the payload. The upper half
    /// counts the executed calls with this payload.
    let references: Atomic<UInt64>
    let release: Release?
    /// The fork generation in which the payload was created (see `Fork.generation`).
    let process: UInt32
    let kind: Kind
    /// The next payload in a list of payloads whose reference counts have dropped to zero.
    var next: UnsafeMutablePointer<Header>?
  }

  /// The size of the header, rounded up so that the bytes after it are aligned like the block.
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

  // The caller of each of these initializers owns the only reference.

  /// Copies the caller's bytes.
  init(copying bytes: UnsafeRawPointer, size: Int) throws(Status) {
    // The caller's size is a `size_t`, which is too large if it is negative as an `Int`.
    guard size >= 0, size < .max - Self.headerSize else { throw .outOfMemory }
    let block = try Allocator.allocate(size: Self.headerSize + size)
    let copy = block + Self.headerSize
    shims_copy(copy, bytes, size)
    RaceDetector.happensBefore(copy)  // acquired by the thread that runs the queue
    self.init(block, .copied, copy, size, nil)
  }

  /// Copies the caller's bytes into a block of a reserve.
  init(copying bytes: UnsafeRawPointer, size: Int, to place: UnsafeMutableRawPointer) {
    let copy = place + Self.headerSize
    shims_copy(copy, bytes, size)
    RaceDetector.happensBefore(copy)  // acquired by the thread that runs the queue
    self.init(place, .reserved, copy, size, nil)
  }

  init(zeros size: Int) throws(Status) {
    let block = try Allocator.allocateZeroed(size: Self.headerSize + size)
    self.init(block, .copied, block + Self.headerSize, size, nil)
  }

  /// Creates a payload that passes on the program's own bytes.
  init(owning bytes: UnsafeRawPointer?, size: Int, _ release: Release?) throws(Status) {
    let block = try Allocator.allocate(size: Self.headerSize)
    self.init(block, .owned, bytes, size, release)
  }

  /// Initializes the header in a block.
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

  /// Creates a payload with a name. The new payload takes over one reference to the given payload.
  init(_ payload: Payload, named name: UnsafePointer<CChar>) throws(Status) {
    let block = try Allocator.allocate(size: Self.sizeOfNamed(name))
    (block + Self.headerSize).storeBytes(of: payload, as: Payload.self)
    shims_copy(block + Self.nameOffset, name, Self.sizeOfNamed(name) - Self.nameOffset)
    RaceDetector.happensBefore(block)  // acquired by the thread that runs the queue
    self.init(block, .named, payload.bytes, payload.size, nil)
  }

  private static var nameOffset: Int { headerSize + MemoryLayout<Payload>.stride }

  private static func sizeOfNamed(_ name: UnsafePointer<CChar>) -> Int {
    nameOffset + shims_length(name, .max) + 1
  }

  /// The payload or receipt retained by this receipt or named payload.
  var previous: Payload? {
    guard isReceipt || header.pointee.kind == .named else { return nil }
    return (UnsafeRawPointer(header) + Self.headerSize).load(as: Payload.self)
  }

  /// The notified name, if any.
  var name: UnsafePointer<CChar>? {
    if header.pointee.kind != .named { return isReceipt ? previous?.name : nil }
    return (UnsafeRawPointer(header) + Self.nameOffset).assumingMemoryBound(to: CChar.self)
  }

  // MARK: - References

  /// The number of references and the number of executed calls, both read at the same moment.
  ///
  /// Acquire: the effects of the finished calls happen before the caller continues.
  var counts: (references: UInt32, made: UInt32) {
    let counts = header.pointee.references.load(ordering: .acquiring)  // order: calls_over
    return (UInt32(truncatingIfNeeded: counts), UInt32(truncatingIfNeeded: counts >> 32))
  }

  /// Adds a reference. Relaxed is enough, because the caller received the payload from the owner of
  /// a reference.
  func retain() { header.pointee.references.wrappingAdd(1, ordering: .relaxed) }

  /// Removes one reference, and returns the number of remaining references. If it is 0, the caller
  /// owns the payload.
  func countDown(isMade: Bool) -> UInt32 {
    // Release and acquire: other threads' uses of the payload happen before it is freed.
    let left = header.pointee.references.wrappingAdd(
      (isMade ? Self.oneMade : 0) &- 1, ordering: .acquiringAndReleasing  // order: references
    ).newValue
    checkInvariants(UInt32(truncatingIfNeeded: left))
    return UInt32(truncatingIfNeeded: left)
  }

  /// Removes one reference. If it was the last, frees the payload and runs its release function. No
  /// lock is held.
  ///
  /// - Parameter isMade: Whether a call with this payload has been executed.
  func release(isMade: Bool = false) {
    var released = ReleasedPayloads()
    released.release(self, isMade: isMade)
    released.cleanUp()
  }

  /// Runs a caller's release function. No lock is held.
  static func release(_ bytes: UnsafeRawPointer?, _ size: Int, _ function: Release?) {
    guard let function else { return }
    let depth = shims_get_release_depth()
    shims_set_release_depth(depth &+ 1)
    CallerCode.releasing { function(bytes, size) }  //~ owned_payload_released_twice
    shims_set_release_depth(depth)
  }

  /// Frees the block, but not the caller's own bytes. The payload has no references left.
  func deallocate() {
    if header.pointee.kind == .reserved { return PayloadReserve.putBack(header) }
    if isReceipt { return Receipt(self).deallocate() }
    if let name { return Allocator.deallocate(header, size: Self.sizeOfNamed(name)) }
    let inlineSize = header.pointee.kind == .copied ? size : 0
    Allocator.deallocate(header, size: Self.headerSize + inlineSize)
  }

  // MARK: - Frames

  // A frame publishes the payload that it retains. If the frame's thread no longer exists, another
  // thread releases the payload.

  /// The payload that a frame retains, if any.
  init?(retainedBy frame: Frame) {
    guard let address = UnsafeMutableRawPointer(bitPattern: frame.payload) else { return nil }
    self.init(at: address)
  }

  /// Transfers one reference to a frame.
  func pass(to frame: Frame) { frame.payload = UInt(bitPattern: header) }

  /// Takes over a frame's reference, if it has one.
  static func take(from frame: Frame) -> Payload? {
    // Clear the frame before the caller releases the payload, because the child of a fork releases
    // the payloads that it finds in frames.
    let payload = Payload(retainedBy: frame)
    frame.payload = 0  //~ payload_left_in_frame
    return payload
  }

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
      // If the block has been freed and reused, the count is probably large or negative.
      Check(file, line).that(
        references < 1 << 31, "the references to a payload are counted", references)
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    var referenceCount: UInt64 { UInt64(counts.references) }
  #endif
}

/// Collects payloads released under a lock. Later, when no lock is held, `cleanUp` frees memory,
/// runs release functions, and wakes threads waiting for calls.
struct ReleasedPayloads {
  /// A chain of payloads whose reference counts are 0.
  private var first: UnsafeMutablePointer<Payload.Header>? = nil
  /// The address of a receipt whose calls are over, or 0.
  private var finishedReceipt: UInt = 0
  /// Whether the calls of more than one receipt are over.
  private var hasFinishedReceipts = false

  var isEmpty: Bool { first == nil && finishedReceipt == 0 }

  /// Removes one reference. The caller may hold a lock.
  mutating func release(_ payload: Payload?, isMade: Bool = false) {
    if let payload { countDown(payload, isMade: isMade) }
  }

  @inline(never)
  private mutating func countDown(_ payload: Payload, isMade: Bool) {
    // Read this first, because the waiting thread may free the receipt after `countDown`.
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
    // In the child of a fork, do not release a payload created by the parent, because the parent
    // releases it.
    let isOurs = payload.header.pointee.process == Fork.generation  //~ parents_payload_released
    payload.deallocate()
    if isOurs { Payload.release(bytes, size, release) }  //~ payload_released_under_lock
  }
}

/// Memory for a queue's payloads, divided into blocks of equal size.
///
/// A payload may outlive the queue, because a call with it may be running or waiting in another
/// queue. Therefore the reserve counts the blocks in use, plus one for the queue itself. The
/// reserve uses the lock of the queue's slot, even after the slot has been reused. A fork also
/// takes that lock, so the child finds the reserve in a consistent state.
struct PayloadReserve {
  /// The header at the start of the allocation.
  struct Header: ~Copyable {
    var firstVacant: UnsafeMutablePointer<Block>?
    var references: Int
    /// The maximum size of a payload.
    let payloadSize: Int
    let byteCount: Int
    /// Nil until the queue exists.
    var lock: Lock?
  }

  /// The header before each payload.
  struct Block {
    let reserve: Address
    var next: UnsafeMutablePointer<Block>?

    /// The distance from the block to the payload. The payload is aligned like the allocation.
    static var headerSize: Int { Payload.aligned(MemoryLayout<Block>.size) }
  }

  typealias Address = UnsafeMutablePointer<Header>

  /// The number of blocks in excess of the queue's capacity. These blocks are for running calls,
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
    // Write to all pages, so that the system supplies their memory now and not on first use.
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

  /// Called once, by the queue that will use the reserve.
  func start(with lock: Lock) -> Address {
    header.pointee.lock = lock
    return header
  }

  /// Takes memory for a payload and its header. Returns nil if the payload is too large or all
  /// blocks are in use. The caller holds the lock.
  func take(for size: Int) -> UnsafeMutableRawPointer? {
    guard size >= 0, size <= header.pointee.payloadSize, let block = header.pointee.firstVacant
    else { return nil }
    header.pointee.firstVacant = block.pointee.next
    header.pointee.references += 1  //~ reserve_not_retained
    return UnsafeMutableRawPointer(block) + Block.headerSize
  }

  /// Puts a payload's block back into its reserve. No lock is held.
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
