import Synchronization

/// The 64 bits of a handle: generation (34) | kind (4) | index (26).
///
/// The slot at the index stores the whole handle of its current object, so one comparison
/// distinguishes a valid handle from every other value. Slots are never unmapped, so a stale or
/// forged handle leads to a word that does not match, and never to unmapped memory.
struct Handle: RawRepresentable, Equatable, AtomicRepresentable {
  /// The kind of the object in a slot. Callers receive only handles of the kinds `multicast`,
  /// `registration`, `lifetime`, `queue` and `broadcaster`.
  struct Kind: Equatable {
    let rawValue: UInt64

    /// The slot is not in use.
    static var vacant: Kind { Kind(rawValue: 0) }
    /// The multicast of a transport. `Multicast.open` relies on this number being less than the
    /// number of `multicast`.
    static var transport: Kind { Kind(rawValue: 1) }
    static var multicast: Kind { Kind(rawValue: 2) }
    static var registration: Kind { Kind(rawValue: 3) }
    static var lifetime: Kind { Kind(rawValue: 4) }
    static var queue: Kind { Kind(rawValue: 5) }
    static var broadcaster: Kind { Kind(rawValue: 6) }
    /// The lifetime of all registrations that deliver to a queue.
    static var recipients: Kind { Kind(rawValue: 7) }
    static var policies: Kind { Kind(rawValue: 8) }
    /// A watch, which has no slot.
    static var watch: Kind { Kind(rawValue: 9) }
    /// A live registration that is not plain. Only its slot stores this kind. Its token has the
    /// kind `registration`, which differs from `special` in one bit.
    static var special: Kind { Kind(rawValue: 11) }
    /// The object has been removed or ended, but may still be in use.
    static var retired: Kind { Kind(rawValue: 15) }

    static func == (a: Kind, b: Kind) -> Bool { a.rawValue == b.rawValue }
  }

  static let indexBits: UInt64 = 26
  private static let kindBits: UInt64 = 4
  private static let lowBits = indexBits + kindBits
  // These are computed properties, because on 32-bit processors the compiler would initialize
  // constants at run time.
  private static var indexMask: UInt64 { (1 << indexBits) - 1 }
  private static var generationMask: UInt64 { ~((1 << lowBits) - 1) }
  /// The difference between the handles of two successive objects in a slot.
  static var oneGeneration: UInt64 { 1 << lowBits }

  let rawValue: UInt64

  init(rawValue: UInt64) { self.rawValue = rawValue }
  init(_ rawValue: UInt64) { self.rawValue = rawValue }

  static var none: Handle { Handle(0) }

  var isNone: Bool { rawValue == 0 }
  var generation: UInt64 { rawValue & Self.generationMask }

  var index: UInt32 {
    UInt32(truncatingIfNeeded: rawValue & Self.indexMask)
  }

  var kind: Kind {
    Kind(rawValue: (rawValue & ~Self.generationMask) >> Self.indexBits)
  }

  static func == (a: Handle, b: Handle) -> Bool { a.rawValue == b.rawValue }
  static func != (a: Handle, b: Handle) -> Bool { a.rawValue != b.rawValue }

  var isOfMulticast: Bool { kind == .multicast || kind == .transport }

  func changed(to kind: Kind) -> Handle {
    Handle((rawValue & (Self.generationMask | Self.indexMask)) | kind.rawValue << Self.indexBits)
  }

  /// Whether this word, read from a slot, shows that the registration with this token is live.
  @inline(__always)
  func isLive(as token: Token) -> Bool {
    let difference = (Kind.special.rawValue ^ Kind.registration.rawValue) << Self.indexBits
    return (rawValue ^ token.rawValue) & ~difference == 0
  }

  /// The handle of the slot's next object.
  func next(_ kind: Kind, index: UInt32) -> Handle {
    //~ generation_not_advanced
    Handle((generation &+ Self.oneGeneration) | kind.rawValue << Self.indexBits | UInt64(index))
  }

  /// Whether the object of this handle has ended.
  ///
  /// - Parameter id: The word in the handle's slot; 0 if the page has been returned to the system.
  /// - Returns: `state` if the object has not ended; `ok` if it has; `invalidHandle` if this handle
  ///   has never been handed out.
  func end(foundAs id: Handle) -> Status {
    if self == id { return .state }
    return generation > id.generation && id.generation != 0 ? .invalidHandle : .ok
  }

  /// Whether the slot has used up its generations. Such a slot is never used again.
  var isExhausted: Bool { generation == Self.generationMask }
}

/// The handle of a registration.
typealias Token = Handle
