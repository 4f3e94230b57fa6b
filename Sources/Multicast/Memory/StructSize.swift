import MulticastHeader
import MulticastShims

/// The first field of every struct that a caller fills: the size of the struct as the caller knows
/// it.
enum StructSize {
  // The sizes of version 1.0. No caller has a smaller struct. For a struct that has grown since
  // then: the bytes in integers of a fixed size, and the number of pointers and sizes.
  static var options: Int { 40 + 3 * word }
  static var allocator: Int { MemoryLayout<multicast_allocator>.size }
  static var queueOptions: Int { 16 + 3 * word }
  static var queueStats: Int { MemoryLayout<multicast_queue_stats>.size }
  static var broadcasterOptions: Int { MemoryLayout<multicast_broadcaster_options>.size }
  static var registration: Int { MemoryLayout<multicast_registration>.size }
  // The sizes of version 1.1.
  static var invocation: Int { MemoryLayout<multicast_invocation>.size }
  static var outcome: Int { MemoryLayout<multicast_outcome>.size }
  static var createOptions: Int { MemoryLayout<multicast_create_options>.size }
  static var watch: Int { 16 + 4 * word }
  static var tokenStats: Int { MemoryLayout<multicast_token_stats>.size }
  static var transport: Int { MemoryLayout<multicast_transport>.size }
  private static var word: Int { MemoryLayout<Int>.size }
  private static let largest = 1024

  /// Checks a caller's struct. A caller that is newer than this library has a larger struct, which
  /// is valid if its unknown fields are zero.
  static func isValid(_ given: UnsafeRawPointer, smallest: Int) -> Bool {
    let size = Int(truncatingIfNeeded: given.load(as: UInt32.self))
    guard size >= smallest, size <= largest else { return false }
    for offset in smallest..<size {
      if given.load(fromByteOffset: offset, as: UInt8.self) != 0 { return false }
    }
    return true
  }

  /// Copies a caller's struct of a type that has grown since version 1.0. Fields that the caller
  /// does not know become zero.
  ///
  /// - Parameter known: Receives the copy; all zero before. Each field added since version 1.0 has
  ///   8 bytes, or the size of a pointer.
  /// - Returns: false if the struct cannot be read.
  static func read<Known: BitwiseCopyable>(
    _ given: UnsafePointer<Known>, smallest: Int, into known: inout Known
  ) -> Bool {
    let size = Int(truncatingIfNeeded: UnsafeRawPointer(given).load(as: UInt32.self))
    guard size >= smallest else { return false }
    // Copy whole fields only. If the caller has only a part of a field, its bytes must be zero,
    // like those of an unknown field.
    let sizeRead = min(smallest + (size - smallest) & ~(word - 1), MemoryLayout<Known>.size)
    guard isValid(given, smallest: sizeRead) else { return false }
    shims_copy(&known, given, sizeRead)
    return true
  }

  /// Fills a caller's struct with the fields that both sides know. Only the size in that struct has
  /// to be initialized. Unknown fields become zero.
  ///
  /// - Returns: `invalidArgument` if the struct is too small.
  static func write<Known: BitwiseCopyable>(
    _ known: UnsafePointer<Known>, to given: UnsafeMutablePointer<Known>, smallest: Int
  ) -> Status {
    guard canFill(given, smallest: smallest) else { return .invalidArgument }
    let out = UnsafeMutableRawPointer(given)
    let size = out.load(as: UInt32.self)
    shims_zero(out, Int(size))
    shims_copy(out, known, min(Int(size), MemoryLayout<Known>.size))
    out.storeBytes(of: size, as: UInt32.self)
    return .ok
  }

  /// Whether a caller's struct is large enough to be filled.
  static func canFill(_ given: UnsafeRawPointer, smallest: Int) -> Bool {
    let size = Int(truncatingIfNeeded: given.load(as: UInt32.self))
    return size >= smallest && size <= largest
  }
}
