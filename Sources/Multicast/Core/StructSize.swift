import MulticastShims

/// The first field of every struct that a caller fills: how large the caller believes it to be.
enum StructSize {
  // The sizes of the first version: no caller knows a smaller one.
  static let options = 64
  static let allocator = 32
  static let queueOptions = 12
  static let queueStats = 72
  static let broadcasterOptions = 16
  private static let largest = 1024

  /// A caller that is newer than this library may have more fields, as long as they are zero.
  static func isValid(_ given: UnsafeRawPointer, smallest: Int) -> Bool {
    let size = Int(given.load(as: UInt32.self))
    guard size >= smallest, size <= largest else { return false }
    var offset = smallest
    while offset < size {
      if given.load(fromByteOffset: offset, as: UInt8.self) != 0 { return false }
      offset &+= 1
    }
    return true
  }

  /// Fills a caller's struct with zeros and its size.
  static func initialize(
    _ given: UnsafeMutableRawPointer?, _ size: Int, smallest: Int
  ) -> Status {
    guard let given, size >= smallest, size <= largest else { return .invalidArgument }
    shims_zero(given, size)
    given.storeBytes(of: UInt32(truncatingIfNeeded: size), as: UInt32.self)
    return .ok
  }
}
