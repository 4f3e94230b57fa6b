import MulticastHeader
import MulticastShims

/// The source of all memory of the library: libc's allocator, or the caller's.
///
/// Every block is deallocated with the size and alignment with which it was allocated.
enum Allocator {
  /// All zero if libc's allocator is used. Written once, under the slab lock and before the first
  /// allocation. Every reader has an allocated object, so it reads after that write.
  nonisolated(unsafe) private static var custom = multicast_allocator()

  /// Replaces libc's allocator. The slab lock is held, and nothing has been allocated.
  static func replace(by allocator: multicast_allocator) { custom = allocator }

  /// Whether memory is from libc's allocator.
  static var isLibc: Bool { custom.allocate == nil }

  /// The alignment of every block from libc's `malloc`. A stricter alignment takes a slow path
  /// there.
  static let usualAlignment = 16

  /// Throws if a block of `count` elements would take more bytes than an `Int` can express. On a
  /// 64-bit processor no queue takes that many.
  static func checkSize(count: UInt64, stride: Int) throws(Status) {
    if Int.bitWidth < 64 && count &* UInt64(truncatingIfNeeded: stride) > UInt64(Int.max - 4096) {
      throw .outOfMemory
    }
  }

  /// - Returns: `size` uninitialized bytes.
  static func allocate(
    size: Int, alignment: Int = usualAlignment
  ) throws(Status) -> UnsafeMutableRawPointer {
    let block =
      if let allocate = custom.allocate {
        CallerCode.allocating { allocate(custom.context, size, alignment) }
      } else { shims_allocate(size, alignment) }
    guard let block else { throw .outOfMemory }
    return block
  }

  /// - Returns: `size` bytes of zeros.
  static func allocateZeroed(
    size: Int, alignment: Int = usualAlignment
  ) throws(Status) -> UnsafeMutableRawPointer {
    let block = try allocate(size: size, alignment: alignment)
    shims_zero(block, size)
    return block
  }

  @inline(never)
  static func deallocate(
    _ block: UnsafeMutableRawPointer, size: Int, alignment: Int = usualAlignment
  ) {
    guard let deallocate = custom.deallocate else { return shims_deallocate(block) }
    CallerCode.allocating { deallocate(custom.context, block, size, alignment) }
  }

  /// Allocates memory for a value and moves the value into it.
  static func make<Value>(_ value: Value) throws(Status) -> UnsafeMutablePointer<Value> {
    let block = try allocate(size: MemoryLayout<Value>.size)
    return block.initializeMemory(as: Value.self, to: value)
  }

  static func free<Value>(_ value: UnsafeMutablePointer<Value>) {
    deallocate(value, size: MemoryLayout<Value>.size)
  }
}
