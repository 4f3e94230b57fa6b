import MulticastHeader
import MulticastShims

/// Allocates all memory of the library, with libc's allocator or with the caller's allocator.
///
/// Every block is deallocated with the size and alignment that were used to allocate it.
enum Allocator {
  /// The caller's allocator, or all zeros if the library uses libc's allocator. This variable is
  /// written once, under the slab lock, before the first allocation. Code that reads it already has
  /// an allocated object, so the read comes after the write.
  nonisolated(unsafe) private static var custom = multicast_allocator()

  /// Replaces libc's allocator. The caller holds the slab lock, and nothing has been allocated yet.
  static func replace(by allocator: multicast_allocator) { custom = allocator }

  static var isLibc: Bool { custom.allocate == nil }

  /// The alignment that libc's `malloc` always provides. A stricter alignment requires a slower
  /// function of libc.
  static let usualAlignment = 16

  /// Throws if `count` elements would need more bytes than an `Int` can express. On a 64-bit
  /// processor, checks nothing, because no caller can reach that limit.
  static func checkSize(count: UInt64, stride: Int) throws(Status) {
    #if _pointerBitWidth(_32)
      if count &* UInt64(truncatingIfNeeded: stride) > UInt64(Int.max - 4096) { throw .outOfMemory }
    #endif
  }

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
