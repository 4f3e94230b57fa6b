import MulticastShims

/// The source of all memory of the library: libc's allocator, or the caller's.
///
/// Every block is deallocated with the size and alignment with which it was allocated. A failure is
/// nil, which the caller turns into a status.
enum Allocator {
  typealias Allocate =
    @convention(c) (
      _ context: UnsafeMutableRawPointer?, _ size: Int, _ alignment: Int
    ) -> UnsafeMutableRawPointer?
  typealias Deallocate =
    @convention(c) (
      _ context: UnsafeMutableRawPointer?, _ block: UnsafeMutableRawPointer?, _ size: Int,
      _ alignment: Int
    ) -> Void

  // Written once, under the slab lock and before the first allocation. Every reader has an
  // allocated object, so it reads after that write.
  nonisolated(unsafe) private static var context: UnsafeMutableRawPointer? = nil
  nonisolated(unsafe) private static var allocate: Allocate? = nil
  nonisolated(unsafe) private static var deallocate: Deallocate? = nil

  /// Replaces libc's allocator. The slab lock is held, and nothing has been allocated.
  static func replace(
    context: UnsafeMutableRawPointer?, allocate: @escaping Allocate,
    deallocate: @escaping Deallocate
  ) {
    self.context = context
    self.allocate = allocate
    self.deallocate = deallocate
  }

  /// Whether memory is from libc's allocator.
  static var isLibc: Bool { allocate == nil }

  /// - Returns: `size` bytes that are not initialized, or nil.
  static func allocate(size: Int, alignment: Int) -> UnsafeMutableRawPointer? {
    guard let allocate else { return shims_allocate(size, alignment) }
    return CallerCode.allocating { allocate(context, size, alignment) }
  }

  /// - Returns: `size` bytes of zeros, or nil.
  static func allocateZeroed(size: Int, alignment: Int) -> UnsafeMutableRawPointer? {
    let block = allocate(size: size, alignment: alignment)
    if let block { shims_zero(block, size) }
    return block
  }

  @inline(never)
  static func deallocate(_ block: UnsafeMutableRawPointer, size: Int, alignment: Int) {
    guard let deallocate else { return shims_deallocate(block) }
    CallerCode.allocating { deallocate(context, block, size, alignment) }
  }
}
