import MulticastHeader
import MulticastShims
import Synchronization

/// A hash table that finds a delegate's registrations in a large list. It contains tokens, and uses
/// open addressing.
///
/// A list's index is built after searches without it have taken as much time as building it takes.
/// Entries are never deleted, so a search skips the tokens of removed registrations. The tokens of
/// equal delegates are stored in the order in which the delegates were added. The caller holds the
/// stripe's lock. Invocations do not use the index.
struct DelegateIndex {
  private struct Header {
    /// The number of places minus 1. The number of places is a power of two.
    let mask: UInt64
    /// The number of places that contain a token.
    var used: UInt64
  }

  private static let headerSize = MemoryLayout<Header>.stride
  /// A token is stored fewer than this many places after the place that its hash selects. If there
  /// are too many equal delegates for that, a search without an index is faster anyway.
  private static let longestProbe: UInt32 = 64

  private let storage: UnsafeMutablePointer<Header>

  init(_ address: UnsafeMutableRawPointer) {
    storage = address.assumingMemoryBound(to: Header.self)
  }

  var address: UnsafeMutableRawPointer { UnsafeMutableRawPointer(storage) }

  private var places: UnsafeMutablePointer<Token> {
    (address + Self.headerSize).assumingMemoryBound(to: Token.self)
  }

  // MARK: - Memory

  private static func size(mask: UInt64) -> Int {
    headerSize &+ (Int(mask) &+ 1) &* MemoryLayout<Token>.stride
  }

  /// Builds the index of a list, with three places per delegate, so that the number of delegates
  /// can double before the index is full.
  ///
  /// - Returns: nil if memory is exhausted or if too many delegates are equal.
  static func make(for list: InvocationList) -> DelegateIndex? {
    var mask: UInt64 = 1
    while mask / 3 < UInt64(list.live) { mask = mask &* 2 &+ 1 }
    guard let block = try? Allocator.allocateZeroed(size: size(mask: mask)) else { return nil }
    let header = Header(mask: mask, used: 0)
    block.initializeMemory(as: Header.self, repeating: header, count: 1)
    let index = DelegateIndex(block)
    if index.put(list, from: 0, to: list.count) { return index }
    index.deallocate()
    return nil
  }

  func deallocate() {
    Allocator.deallocate(address, size: Self.size(mask: storage.pointee.mask))
  }

  // MARK: - Looking up

  /// Returns a delegate's live registration with the highest priority. If there are several,
  /// returns the one that was added first.
  func first(_ delegate: multicast_delegate) -> Registration? {
    var first: Registration? = nil
    var place = firstPlace(for: delegate)
    var count: UInt32 = 0
    while count < Self.longestProbe, !places[Int(place)].isNone {
      let token = places[Int(place)]
      let registration = Registration(index: token.index)
      if registration.id.isLive(as: token) && registration.isOf(delegate)
        && first.map({ registration.priority > $0.priority }) ?? true
      {
        first = registration
      }
      place = (place &+ 1) & storage.pointee.mask
      count &+= 1
    }
    return first
  }

  // MARK: - Adding tokens

  /// - Returns: false if there is no room for all tokens.
  func put(_ list: InvocationList, from start: UInt32, to end: UInt32) -> Bool {
    for position in start..<end where list.entry(position).isLive {
      let entry = list.entry(position)
      guard put(entry.token, Registration(entry).delegate) else { return false }
    }
    return true
  }

  private func put(_ token: Token, _ delegate: multicast_delegate) -> Bool {
    if storage.pointee.used > storage.pointee.mask / 3 &* 2 { return false }
    var place = firstPlace(for: delegate)
    var count: UInt32 = 0
    while !places[Int(place)].isNone {
      place = (place &+ 1) & storage.pointee.mask
      count &+= 1
      if count == Self.longestProbe { return false }
    }
    places[Int(place)] = token
    storage.pointee.used &+= 1
    return true
  }

  /// Returns the place that a delegate's hash selects. The hash leaves out the low bits of the
  /// product, because the low bits of all addresses are equal.
  private func firstPlace(for delegate: multicast_delegate) -> UInt64 {
    let function = unsafeBitCast(delegate.function, to: UInt.self)
    let context = UInt64(UInt(bitPattern: delegate.context))
    let product = (context &+ UInt64(function) &* 0x9E37_79B9_7F4A_7C15)
      .multipliedFullWidth(by: 0xD1B5_4A32_D192_ED03)
    return (product.high ^ product.low) >> 32 & storage.pointee.mask
  }
}
