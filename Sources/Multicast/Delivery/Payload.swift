import MulticastShims
import Synchronization

/// A copy of an invocation's payload, shared by the calls of it that wait.
struct Payload {
  struct Header: ~Copyable {
    var size: Int
    /// How many calls and invocations hold it.
    let holders: Atomic<Int>
  }

  private static let alignment = 16
  private static let headerSize = 16

  let header: UnsafeMutablePointer<Header>

  init(_ address: UnsafeMutableRawPointer) {
    header = address.assumingMemoryBound(to: Header.self)
  }

  /// Copies what the caller then holds.
  ///
  /// - Returns: nil when out of memory.
  init?(copying bytes: UnsafeRawPointer, size: Int) {
    // A `size_t`: below zero is more than there can be.
    guard size >= 0, size < .max - Self.headerSize,
      let block = Allocator.allocate(size: Self.headerSize + size, alignment: Self.alignment)
    else { return nil }
    header = block.bindMemory(to: Header.self, capacity: 1)
    header.initialize(to: Header(size: size, holders: Atomic(1)))
    shims_copy(block + Self.headerSize, bytes, size)
  }

  init?(keptBy frame: UnsafeMutablePointer<Frame>) {
    let address = frame.pointee.payload.load(ordering: .relaxed)
    guard let block = UnsafeMutableRawPointer(bitPattern: address) else { return nil }
    self.init(block)
  }

  /// Hands one hold over to a frame.
  func keep(in frame: UnsafeMutablePointer<Frame>) {
    frame.pointee.payload.store(UInt(bitPattern: header), ordering: .relaxed)
  }

  var bytes: UnsafeRawPointer { UnsafeRawPointer(header) + Self.headerSize }
  var size: Int { header.pointee.size }

  /// Relaxed: whoever holds one more has it from somebody who holds it.
  func hold() { header.pointee.holders.wrappingAdd(1, ordering: .relaxed) }

  func letGo() {
    // Release and acquire: what the others did with it happened before it is freed.
    let left = header.pointee.holders.wrappingSubtract(
      1, ordering: .acquiringAndReleasing
    ).newValue
    checkInvariants(left)
    if left > 0 { return }
    Allocator.deallocate(header, size: Self.headerSize + size, alignment: Self.alignment)
  }
}
