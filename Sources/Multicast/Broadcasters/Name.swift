import MulticastShims
import Synchronization

/// The name of a protocol, as a caller gives it.
struct Name {
  static let longest = 255

  let bytes: UnsafeRawPointer
  let length: Int

  init(bytes: UnsafeRawPointer, length: Int) {
    self.bytes = bytes
    self.length = length
  }

  /// - Returns: nil if it is empty or too long.
  init?(_ text: UnsafePointer<CChar>?) {
    guard let text else { return nil }
    length = shims_length(text, Self.longest + 1)
    guard length > 0 && length <= Self.longest else { return nil }
    bytes = UnsafeRawPointer(text)
  }

  /// - Returns: a copy of the bytes, with a NUL.
  func copy() throws(Status) -> UnsafeMutableRawPointer {
    let text = try Allocator.allocate(size: length + 1, alignment: 1)
    shims_copy(text, bytes, length)
    text.storeBytes(of: 0, toByteOffset: length, as: UInt8.self)
    return text
  }

  static func deallocate(copy text: UnsafeMutableRawPointer) {
    let text = text.assumingMemoryBound(to: CChar.self)
    Allocator.deallocate(text, size: shims_length(text, longest + 1) + 1, alignment: 1)
  }

  static func == (a: Name, b: Name) -> Bool {
    a.length == b.length && shims_equal(a.bytes, b.bytes, a.length)
  }

  @_optimize(speed)
  func hash(seed: UInt64) -> UInt64 {
    var hash = Self.mix(seed ^ UInt64(length))
    var offset = 0
    while length &- offset > 8 {
      hash = Self.mix(hash ^ bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      offset &+= 8
    }
    return Self.mix(hash ^ lastBytes)
  }

  /// The last eight bytes, or as many as there are.
  private var lastBytes: UInt64 {
    if length >= 8 {
      return bytes.loadUnaligned(fromByteOffset: length &- 8, as: UInt64.self)
    }
    if length >= 4 {
      let first = bytes.loadUnaligned(as: UInt32.self)
      let last = bytes.loadUnaligned(fromByteOffset: length &- 4, as: UInt32.self)
      return UInt64(first) | UInt64(last) << 32
    }
    let first = bytes.load(as: UInt8.self)
    let middle = bytes.load(fromByteOffset: length / 2, as: UInt8.self)
    let last = bytes.load(fromByteOffset: length &- 1, as: UInt8.self)
    return UInt64(first) | UInt64(middle) << 8 | UInt64(last) << 16
  }

  /// Both halves of a product, so that each bit of the word affects each bit of the result.
  private static func mix(_ word: UInt64) -> UInt64 {
    let product = (word ^ 0x9E37_79B9_7F4A_7C15).multipliedFullWidth(by: 0xD1B5_4A32_D192_ED03)
    return product.high ^ product.low
  }
}

/// A name that a broadcaster has. Its bytes, after one with their number, exist as long as the
/// broadcaster.
struct KnownName {
  private static let bytesOffset = 1

  private let address: UnsafeMutableRawPointer
  private let handle: UnsafeMutablePointer<Atomic<Handle>>

  init(at address: UnsafeMutableRawPointer, _ handle: UnsafeMutablePointer<Atomic<Handle>>) {
    self.address = address
    self.handle = handle
  }

  static func size(_ name: Name) -> Int { bytesOffset + name.length }

  static func write(_ name: Name, at address: UnsafeMutableRawPointer) {
    address.storeBytes(of: UInt8(truncatingIfNeeded: name.length), as: UInt8.self)
    shims_copy(address + bytesOffset, name.bytes, name.length)
  }

  var name: Name {
    let length = address.load(as: UInt8.self)
    return Name(bytes: address + Self.bytesOffset, length: Int(length))
  }

  /// Acquire and release: a thread that finds the handle finds the multicast. The handle is
  /// replaced if the caller has destroyed the multicast.
  var multicast: Handle {
    get { handle.pointee.load(ordering: .acquiring) }  // order: table
    nonmutating set { handle.pointee.store(newValue, ordering: .releasing) }
  }
}
