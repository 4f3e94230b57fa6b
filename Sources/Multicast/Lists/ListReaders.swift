/// Some retired lists of a multicast, and which of them invocations may be reading: a hash set of
/// their addresses, with open addressing. All frames are read once for all of these lists.
struct ListReaders {
  /// How many lists it holds, and its places. They are on the stack: an invocation that ends asks,
  /// and makes no allocation. They take 1,024 bytes, the most that the compiler puts on the stack:
  /// it would allocate more, unchecked, and not from the caller's allocator.
  static let most = 64
  private static let placeCount = 2 * most
  /// A bit of an address that is zero: the list is being read.
  private static let isRead: UInt = 1

  private let places: UnsafeMutablePointer<UInt>
  /// The oldest invocation that has not published its list yet.
  private var oldest = Epoch.latest

  /// - Parameters:
  ///   - first: The newest list.
  ///   - target: The target of the frames that may be reading.
  static func read<Result>(
    from first: InvocationList.Address, of target: Target, _ body: (ListReaders) -> Result
  ) -> Result {
    withUnsafeTemporaryAllocation(of: UInt.self, capacity: placeCount) { places in
      var readers = ListReaders(places.baseAddress.unsafelyUnwrapped, first)
      for record in ThreadRegistry.all {
        _ = record.firstFrame { frame, other, _ in
          if other == target { readers.add(frame) }
          return false
        }
      }
      return body(readers)
    }
  }

  private init(_ places: UnsafeMutablePointer<UInt>, _ first: InvocationList.Address) {
    self.places = places
    places.initialize(repeating: 0, count: Self.placeCount)
    for list in InvocationList.Chain(rest: first).prefix(Self.most) {
      let address = UInt(bitPattern: list.address)
      place(of: address).pointee = address
    }
  }

  /// The place of a list, or the one where it would be.
  private func place(of list: UInt) -> UnsafeMutablePointer<UInt> {
    let hash = UInt64(list) &* 0x9E37_79B9_7F4A_7C15 >> 32
    var place = Int(truncatingIfNeeded: hash) & (Self.placeCount &- 1)
    while places[place] != 0 && places[place] & ~Self.isRead != list {
      place = (place &+ 1) & (Self.placeCount &- 1)
    }
    return places + place
  }

  /// The epoch is read before the list, which a later invocation may have put there: see
  /// `Frame.mayRead`.
  private mutating func add(_ frame: Frame) {
    let epoch = frame.epoch
    let list = frame.list
    if list != 0 {
      let place = place(of: list)
      if place.pointee != 0 { place.pointee |= Self.isRead }
    } else if epoch < oldest {
      oldest = epoch
    }
  }

  /// Whether an invocation may be reading one of the lists.
  func mayRead(_ list: InvocationList) -> Bool {
    if oldest < list.header.retiredAt { return true }
    return place(of: UInt(bitPattern: list.address)).pointee & Self.isRead != 0
  }
}
