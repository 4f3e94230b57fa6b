/// The 64 bits of a handle: generation (34) | kind (4) | index (26).
///
/// The slot that the index leads to holds the whole handle of what lives there, so one comparison
/// tells a live handle from every other value. Slots are never unmapped: a stale or forged handle
/// reads a word that does not match, not memory that is gone.
enum Handle {
  /// What a slot holds. No handle has a kind below 1 or above 14: those say that a slot is not
  /// live.
  enum Kind {
    /// Nobody's: on a free list, or never used.
    static let vacant: UInt64 = 0
    static let multicast: UInt64 = 1
    static let registration: UInt64 = 2
    static let lifetime: UInt64 = 3
    static let queue: UInt64 = 4
    static let broadcaster: UInt64 = 5
    /// A lifetime that the library itself keeps: that of the registrations that deliver to a queue.
    static let recipients: UInt64 = 6
    /// Removed, but not yet known to be out of every call.
    static let leaving: UInt64 = 15
  }

  static let indexBits: UInt64 = 26
  static let kindBits: UInt64 = 4
  static let lowBits = indexBits + kindBits
  static let indexMask: UInt64 = (1 << indexBits) - 1
  static let generationMask: UInt64 = ~((1 << lowBits) - 1)
  static let oneGeneration: UInt64 = 1 << lowBits

  @inline(__always) static func index(of handle: UInt64) -> UInt32 {
    UInt32(truncatingIfNeeded: handle & indexMask)
  }

  @inline(__always) static func kind(of handle: UInt64) -> UInt64 {
    (handle & ~generationMask) >> indexBits
  }

  @inline(__always) static func generation(of handle: UInt64) -> UInt64 {
    handle & generationMask
  }

  /// The same generation and index as another kind.
  @inline(__always) static func change(_ handle: UInt64, to kind: UInt64) -> UInt64 {
    (handle & (generationMask | indexMask)) | (kind << indexBits)
  }

  /// The handle of the next inhabitant of a vacant slot.
  static func next(after vacant: UInt64, kind: UInt64, index: UInt32) -> UInt64 {
    (generation(of: vacant) &+ oneGeneration) | (kind << indexBits) | UInt64(index)
  }

  /// Whether a slot has given out its last generation; it is never used again then.
  static func isExhausted(_ handle: UInt64) -> Bool {
    generation(of: handle) == generationMask
  }
}
