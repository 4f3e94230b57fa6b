import MulticastHeader
import MulticastShims

/// The first field of every struct that callers fill: the size of the struct in the caller's
/// version of the header.
enum StructSize {
  // The sizes in version 1.0. No caller has a smaller struct. If a struct has grown since then, its
  // old size is the size of its fixed-size integers plus a number of words.
  static var options: Int { 40 + 3 * word }
  static var allocator: Int { MemoryLayout<multicast_allocator>.size }
  static var queueOptions: Int { 16 + 3 * word }
  static var queueStats: Int { MemoryLayout<multicast_queue_stats>.size }
  static var broadcasterOptions: Int { MemoryLayout<multicast_broadcaster_options>.size }
  static var registration: Int { MemoryLayout<multicast_registration>.size }
  // The sizes in version 1.1.
  static var invocation: Int { MemoryLayout<multicast_invocation>.size }
  static var outcome: Int { MemoryLayout<multicast_outcome>.size }
  static var createOptions: Int { MemoryLayout<multicast_create_options>.size }
  static var watch: Int { 16 + 4 * word }
  static var tokenStats: Int { MemoryLayout<multicast_token_stats>.size }
  static var transport: Int { MemoryLayout<multicast_transport>.size }
  private static var word: Int { MemoryLayout<Int>.size }
  private static let largest = 1024

  /// Checks a caller's struct. A caller compiled with a newer header may pass a larger struct. That
  /// struct is valid if the fields that this library does not know are zero.
  static func isValid(_ given: UnsafeRawPointer, smallest: Int) -> Bool {
    let size = Int(truncatingIfNeeded: given.load(as: UInt32.self))
    guard size >= smallest, size <= largest else { return false }
    for offset in smallest..<size {
      if given.load(fromByteOffset: offset, as: UInt8.self) != 0 { return false }
    }
    return true
  }

  /// Copies a caller's struct of a type that has grown since version 1.0. The fields that the
  /// caller's struct lacks become zero.
  ///
  /// - Parameter known: Receives the copy. The caller of this function has set `known` to all
  ///   zeros. Each field added since version 1.0 is 8 bytes long, or as long as a pointer.
  /// - Returns: false if the struct is invalid.
  static func read<Known: BitwiseCopyable>(
    _ given: UnsafePointer<Known>, smallest: Int, into known: inout Known
  ) -> Bool {
    let size = Int(truncatingIfNeeded: UnsafeRawPointer(given).load(as: UInt32.self))
    guard size >= smallest else { return false }
    // Copy only whole fields. If the caller's struct ends within a field, that part of the field
    // must be zero, like an unknown field.
    let sizeRead = min(smallest + (size - smallest) & ~(word - 1), MemoryLayout<Known>.size)
    guard isValid(given, smallest: sizeRead) else { return false }
    shims_copy(&known, given, sizeRead)
    return true
  }

  /// Fills a caller's struct with the fields that both sides know, and sets all other fields to
  /// zero. The caller has to initialize only the size in that struct.
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
