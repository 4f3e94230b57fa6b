import MulticastHeader
import MulticastShims

/// Statistics of a registration, counted while it is watched. The watches' lock guards them.
///
/// One block contains the statistics of all registrations in a slab. The block is allocated when
/// something is first counted for one of these registrations. A slot's entry belongs to the newest
/// token for which something has been counted.
struct CallStatistics {
  private var token = Token.none
  // These fields have the same layout as in `multicast_token_stats`.
  private var calls: UInt64 = 0
  private var total: UInt64 = 0
  private var longest: UInt64 = 0
  private var queued: UInt64 = 0
  private var dropped: UInt64 = 0

  /// Adds to the counts. The caller holds the watches' lock. If memory is exhausted, nothing is
  /// counted.
  static func add(
    _ token: Token, calls: UInt64 = 0, taking elapsed: UInt64 = 0, queued: UInt64 = 0,
    dropped: UInt64 = 0
  ) {
    guard let statistics = place(of: token, adds: true) else { return }
    if statistics.pointee.token != token {
      // This thread has been delayed. The entry now belongs to the slot's next registration, for
      // which nothing must be counted.
      if statistics.pointee.token.rawValue > token.rawValue { return }
      statistics.initialize(to: CallStatistics())
      statistics.pointee.token = token
    }
    statistics.pointee.calls &+= calls
    statistics.pointee.total &+= elapsed
    statistics.pointee.longest = max(statistics.pointee.longest, elapsed)
    statistics.pointee.queued &+= queued
    statistics.pointee.dropped &+= dropped
  }

  static func read(
    _ token: Token, into out: UnsafeMutablePointer<multicast_token_stats>?
  ) -> Status {
    guard Registration.isLive(token) else { return .invalidHandle }
    guard let out else { return .invalidArgument }
    var statistics = CallStatistics()
    Lock.watches.lock()
    if let known = place(of: token, adds: false), known.pointee.token == token {
      statistics = known.pointee
    }
    Lock.watches.unlock()
    statistics.token = .none  // its bytes are `struct_size` and `reserved` there
    var known = unsafeBitCast(statistics, to: multicast_token_stats.self)
    return StructSize.write(&known, to: out, smallest: StructSize.tokenStats)
  }

  private static func place(of token: Token, adds: Bool) -> UnsafeMutablePointer<CallStatistics>? {
    let (slab, place) = SlabDirectory.parts(of: token.index)
    let block = shims_get_tallies(slab).unsafelyUnwrapped
    if block.pointee == nil && adds {
      let count = Int(Registration.directory.slotCount(ofSlab: slab))
      block.pointee = try? Allocator.allocateZeroed(
        size: count &* MemoryLayout<CallStatistics>.stride)
    }
    return block.pointee.map { $0.assumingMemoryBound(to: CallStatistics.self) + place }
  }
}
