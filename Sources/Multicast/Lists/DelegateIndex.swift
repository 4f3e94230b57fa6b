import MulticastHeader
import MulticastShims
import Synchronization

/// Finds the registrations of a delegate in a large list: a hash table of tokens, with open
/// addressing.
///
/// It is made when searches without it have taken longer than making it would. Entries stay: a
/// search passes over the token of a removed registration. Equal delegates are in the order in
/// which they were added. The stripe's lock is held; invocations do not use the index.
struct DelegateIndex {
  private struct Header {
    /// The number of places, a power of two, less 1.
    let mask: UInt64
    /// How many places are used.
    var used: UInt64
  }

  private static let headerSize = MemoryLayout<Header>.stride
  /// A token is at most so many places behind the first place for it. So many equal delegates are
  /// found faster without an index, too.
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

  /// Makes the index of a list. Three places for each delegate leave room for as many more.
  ///
  /// - Returns: nil if out of memory, or if too many delegates are equal.
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

  /// The first live registration of a delegate: of the highest priority, and of these the first
  /// that was added, which comes first in the table, too.
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

  // MARK: - Putting in

  /// - Returns: false if there is no room for all of them.
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

  /// Not from the low bits of the product: those of addresses are all the same.
  private func firstPlace(for delegate: multicast_delegate) -> UInt64 {
    let function = unsafeBitCast(delegate.function, to: UInt.self)
    let context = UInt64(UInt(bitPattern: delegate.context))
    let product = (context &+ UInt64(function) &* 0x9E37_79B9_7F4A_7C15)
      .multipliedFullWidth(by: 0xD1B5_4A32_D192_ED03)
    return (product.high ^ product.low) >> 32 & storage.pointee.mask
  }
}
