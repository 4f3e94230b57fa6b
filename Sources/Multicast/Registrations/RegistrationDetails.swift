import MulticastHeader
import MulticastShims
import Synchronization

/// The options of a registration, stored separately because most registrations have none.
struct RegistrationDetails: ~Copyable {
  typealias Address = UnsafeMutablePointer<RegistrationDetails>
  typealias Release = @convention(c) (_ context: UnsafeMutableRawPointer?) -> Void
  typealias Lock =
    @convention(c) (_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?
  typealias Unlock = @convention(c) (_ strong: UnsafeMutableRawPointer?) -> Void

  var release: Release?
  var function: multicast_function?
  var context: UnsafeMutableRawPointer?
  var events: UInt64
  var lock: Lock?
  var unlock: Unlock?
  var multicast = Handle.none
  /// The slot of the delegate's queue, if there is one.
  var queue: UnsafeMutableRawPointer?
  /// The position of the delegate's newest call in the queue. Only the queue uses this field.
  var lastCall: UInt64 = 0
  /// The flags of the options, plus `labelled`.
  private let ownFlags: UInt16
  /// The bits `protected` and `watched`, for queued calls. `watched` may be set at any time.
  private let handling: Atomic<UInt16>
  var priority: Int32
  /// While an add allocates details, this is the address of the next details, or 0. Later, in a
  /// multicast with replay, it is the number of the first invocation that calls the delegate
  /// directly. While earlier invocations are being replayed, it is the highest possible number.
  let replayed: Atomic<UInt>

  static let isReplaying = UInt.max

  /// Whether earlier invocations are being replayed to the delegate, or were still being replayed
  /// when the registration was removed.
  var isReplayed: Bool { replayed.load(ordering: .relaxed) == Self.isReplaying }

  var flags: UInt32 { UInt32(ownFlags) }

  /// Whether a queued call needs the slow path, because the delegate is called only once, its
  /// context has to be locked, or its calls are watched.
  var isProtected: Bool { handling.load(ordering: .relaxed) != 0 }

  var isWatched: Bool { handling.load(ordering: .relaxed) & Self.watched != 0 }

  private static let protected: UInt16 = 1
  private static let watched: UInt16 = 2

  /// Makes every call that is queued from now on a watched call. Relaxed is enough, because these
  /// calls are queued after this store, under the queue's lock.
  func setWatched() { handling.bitwiseOr(Self.watched, ordering: .relaxed) }

  // MARK: - Memory

  /// The size of the details, including the memberships that follow them, one for each role.
  private static let size =
    MemoryLayout<RegistrationDetails>.stride
    + Membership.roleCount * MemoryLayout<Membership>.stride

  /// Set if a label follows the memberships. Callers cannot set this flag.
  private static let labelled: UInt32 = 1 << 15

  private static func size(_ flags: UInt32) -> Int {
    flags & labelled != 0 ? size + MemoryLayout<shims_label>.size : size
  }

  static func allocate(
    _ options: Options, _ delegate: multicast_delegate
  ) throws(Status) -> RegistrationDetails.Address {
    let given = options.given
    let flags = given.flags | (given.label != nil ? labelled : 0)
    let handling = options.isOnce || options.isWeak ? protected : 0
    let block = try Allocator.allocate(size: size(flags))
    let details = block.bindMemory(to: RegistrationDetails.self, capacity: 1)
    details.initialize(
      to: RegistrationDetails(
        release: options.finalRelease, function: delegate.function, context: delegate.context,
        events: given.events, lock: given.lock, unlock: given.unlock,
        queue: options.destination?.queue, ownFlags: UInt16(truncatingIfNeeded: flags),
        handling: Atomic(handling), priority: given.priority,
        replayed: Atomic(0)))
    //~ member_of_no_lifetime
    membership(of: details, .owned).initialize(to: Membership(lifetime: options.lifetime))
    membership(of: details, .recipient).initialize(
      to: Membership(lifetime: options.destination?.recipients ?? .none))
    if given.label != nil { shims_copy_label(label(of: details), given.label) }
    return details
  }

  static func deallocate(_ details: RegistrationDetails.Address) {
    Allocator.deallocate(details, size: size(details.pointee.flags))
  }

  static func membership(
    of details: RegistrationDetails.Address, _ role: Membership.Role
  ) -> UnsafeMutablePointer<Membership> {
    (UnsafeMutableRawPointer(details) + MemoryLayout<RegistrationDetails>.stride)
      .assumingMemoryBound(to: Membership.self) + role.rawValue
  }

  static func label(of details: RegistrationDetails.Address) -> UnsafeMutablePointer<shims_label>? {
    if details.pointee.flags & labelled == 0 { return nil }
    return (UnsafeMutableRawPointer(details) + size).assumingMemoryBound(to: shims_label.self)
  }
}

/// The arguments that an invocation passes to each delegate.
struct Invocation {
  let event: UInt32
  let payload: UnsafeRawPointer?
  let size: Int

  /// Whether a delegate with this event mask wants the event. The mask does not apply to event
  /// numbers of 64 and above, so every delegate wants these events.
  func isWanted(_ events: UInt64) -> Bool {
    event >= 64 || events & (1 << UInt64(event)) != 0  //~ events_ignored
  }
}

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
