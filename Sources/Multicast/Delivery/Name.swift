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

/// A name that a broadcaster has: the handle of its multicast, the length (one byte), the bytes. It
/// exists as long as the broadcaster, and only the handle changes.
struct KnownName {
  static let alignment = 8
  private static let lengthOffset = 8
  private static let bytesOffset = 9

  private let address: UnsafeMutableRawPointer

  @inline(__always) init(at address: UnsafeMutableRawPointer) { self.address = address }

  static func size(_ name: Name) -> Int {
    (bytesOffset + name.length + alignment - 1) & ~(alignment - 1)
  }

  func initialize(_ name: Name, _ multicast: Handle) {
    self.multicast = multicast
    address.storeBytes(
      of: UInt8(truncatingIfNeeded: name.length), toByteOffset: Self.lengthOffset, as: UInt8.self)
    shims_copy(address + Self.bytesOffset, name.bytes, name.length)
  }

  @inline(__always) var name: Name {
    let length = address.load(fromByteOffset: Self.lengthOffset, as: UInt8.self)
    return Name(bytes: address + Self.bytesOffset, length: Int(length))
  }

  /// Acquire and release: a thread that finds the handle finds the multicast. It is replaced if the
  /// caller has destroyed the multicast.
  @inline(__always) var multicast: Handle {
    get { handle.pointee.load(ordering: .acquiring) }  // order: table
    nonmutating set { handle.pointee.store(newValue, ordering: .releasing) }
  }

  @inline(__always) private var handle: UnsafeMutablePointer<Atomic<Handle>> {
    address.assumingMemoryBound(to: Atomic<Handle>.self)
  }
}
