import MulticastShims
import Synchronization

/// A copy of an invocation's payload, shared by its calls that wait. It counts references.
struct Payload {
  struct Header: ~Copyable {
    var size: Int
    /// How many calls and frames retain it.
    let references: Atomic<Int>
  }

  private static let alignment = 16
  private static let headerSize = 16

  let header: UnsafeMutablePointer<Header>

  init(at address: UnsafeMutableRawPointer) {
    header = address.assumingMemoryBound(to: Header.self)
  }

  /// Makes a copy, which the caller retains.
  ///
  /// - Returns: nil if out of memory.
  init?(copying bytes: UnsafeRawPointer, size: Int) {
    // A `size_t`: below zero is more than there can be.
    guard size >= 0, size < .max - Self.headerSize,
      let block = Allocator.allocate(size: Self.headerSize + size, alignment: Self.alignment)
    else { return nil }
    header = block.bindMemory(to: Header.self, capacity: 1)
    header.initialize(to: Header(size: size, references: Atomic(1)))
    shims_copy(block + Self.headerSize, bytes, size)
  }

  var bytes: UnsafeRawPointer { UnsafeRawPointer(header) + Self.headerSize }
  var size: Int { header.pointee.size }

  /// Relaxed: the caller has the payload from something that retains it.
  func retain() { header.pointee.references.wrappingAdd(1, ordering: .relaxed) }

  func release() {
    // Release and acquire: what other threads did with it happened before it is freed.
    let left = header.pointee.references.wrappingSubtract(
      1, ordering: .acquiringAndReleasing
    ).newValue
    checkInvariants(left)
    if left > 0 { return }
    Allocator.deallocate(header, size: Self.headerSize + size, alignment: Self.alignment)
  }

  // MARK: - Frames

  // A frame publishes what it retains: if its thread does not exist any more, another one releases
  // it.

  /// The payload that a frame retains.
  init?(retainedBy frame: Frame) {
    guard let address = UnsafeMutableRawPointer(bitPattern: frame.payload) else { return nil }
    self.init(at: address)
  }

  /// Passes one reference to a frame.
  func pass(to frame: Frame) { frame.payload = UInt(bitPattern: header) }

  /// Releases what a frame retains, if anything.
  static func release(of frame: Frame) {
    // Clear the frame first: the child of a fork releases what it finds there.
    let payload = Payload(retainedBy: frame)
    frame.payload = 0  //~ payload_left_in_frame
    payload?.release()  //~ payload_not_released
  }
}
