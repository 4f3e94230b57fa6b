import MulticastHeader
import MulticastShims
import Synchronization

extension Report {
  /// A copy of the properties of a registration that appear in reports.
  private struct Facts {
    var token = Token.none
    var delegate = multicast_delegate()
    var isPaused = false
    var isOnce = false
    var isWeak = false
    var flags: UInt32 = 0
    var priority: Int32 = 0
    var events: UInt64 = 0
    var lifetime = Handle.none
    var queue = Handle.none

    /// The stripe's lock is held.
    mutating func read(_ entry: InvocationList.Entry) {
      let registration = Registration(entry)
      token = entry.token
      delegate = registration.delegate
      isPaused = registration.has(Registration.Flags.paused)
      isOnce = registration.has(Registration.Flags.once)
      isWeak = registration.has(Registration.Flags.shared)
      guard let details = registration.details else { return }
      flags = details.pointee.flags
      priority = details.pointee.priority
      isWeak = isWeak || details.pointee.lock != nil
      events = details.pointee.events
      lifetime = RegistrationDetails.membership(of: details, .owned).pointee.lifetime
      // Read the handle without the queue's lock. If the queue is being destroyed, this may be the
      // handle of a later queue in the slot.
      if let slot = details.pointee.queue { queue = Queue(slot: slot).handle }
    }
  }

  // MARK: - A multicast

  /// Takes the stripe's lock, if the multicast still exists.
  private mutating func take(_ multicast: Multicast) -> Access {
    guard take(multicast.stripe.mutex) else { return .refused }
    if multicast.isCurrent { return .locked }
    multicast.stripe.unlock()
    return .stale
  }

  /// - Parameter withCalls: Whether to add the threads that are in calls to the multicast's
  ///   delegates, or are waiting for these calls.
  @inline(never)
  mutating func add(_ multicast: Multicast, withCalls: Bool) {
    switch take(multicast) {
    case .stale: return
    case .refused:
      text.add(
        "\nmulticast %x: a thread is changing it and does not go on\n", multicast.handle.rawValue)
    case .locked:
      text.keep(multicast.label)
      let live = multicast.list?.live ?? 0
      var (kept, most): (UInt32, UInt32) = (0, 0)
      if multicast.hasPolicies { (kept, most) = (multicast.replay.count, multicast.replay.most) }
      multicast.stripe.unlock()
      if !text.hasLabel { keepName(of: multicast.handle) }
      text.add("\nmulticast %x%l: delegates: %d", multicast.handle.rawValue, UInt64(live))
      if most != 0 { text.add(", replay %d of %d", UInt64(kept), UInt64(most)) }
      text.add("\n")
      var position: UInt32 = 0
      while text.goesOn, let facts = nextDelegate(&position, of: multicast) { add(facts) }
    }
    if withCalls { addThreads(multicast) }
  }

  /// Returns a copy of the next live delegate's properties, and stores its label for the next line.
  private mutating func nextDelegate(_ position: inout UInt32, of multicast: Multicast) -> Facts? {
    guard take(multicast) == .locked else { return nil }
    defer { multicast.stripe.unlock() }
    guard let list = multicast.list,
      let next = list.firstLive(from: position)
    else { return nil }
    position = next &+ 1
    var facts = Facts()
    facts.read(list.entry(next))
    text.keep(Registration(index: facts.token.index).label)
    return facts
  }

  private mutating func add(_ facts: Facts) {
    text.add("  delegate %x%l", facts.token.rawValue)
    addPlace(UInt64(unsafeBitCast(facts.delegate.function, to: UInt.self)))
    text.add(", context %x", UInt64(UInt(bitPattern: facts.delegate.context)))
    if facts.priority > 0 { text.add(", priority %d", UInt64(facts.priority)) }
    if facts.priority < 0 { text.add(", priority -%d", UInt64(facts.priority.magnitude)) }
    if facts.events != 0 { text.add(", events %x", facts.events) }
    if facts.isPaused { text.add(", paused") }
    if facts.isOnce { text.add(", once") }
    if facts.flags & MULTICAST_LATEST != 0 { text.add(", latest") }
    if facts.isWeak { text.add(", weak") }
    if !facts.queue.isNone { text.add(", queue %x", facts.queue.rawValue) }
    if !facts.lifetime.isNone { text.add(", lifetime %x", facts.lifetime.rawValue) }
    text.add("\n")
  }

  /// Adds a function's module and symbol.
  private mutating func addPlace(_ function: UInt64) {
    var place = shims_place()
    let isKnown = shims_locate(function, &place)
    withUnsafePointer(to: &place) {
      if isKnown {
        text.add(
          ": %s(%s+%x)", Self.address(shims_get_module($0)), Self.address(shims_get_symbol($0)),
          $0.pointee.offset)
      } else {
        text.add(": %x", function)
      }
    }
  }

  private static func address(_ text: UnsafePointer<CChar>?) -> UInt64 {
    UInt64(UInt(bitPattern: text))
  }

  // MARK: - Names in other lines

  /// Adds a multicast and its label or name.
  mutating func addName(of multicast: Multicast) {
    text.keep(nil)
    if multicast.hasPolicies, take(multicast) == .locked {
      text.keep(multicast.label)
      multicast.stripe.unlock()
    }
    if !text.hasLabel { keepName(of: multicast.handle) }
    text.add("multicast %x%l", multicast.handle.rawValue)
  }

  /// If a broadcaster has a name for a multicast, stores that name for the next line.
  ///
  /// - Complexity: O(names), because the multicast's slot has no room for a link to its name.
  private mutating func keepName(of multicast: Handle) {
    for index in Broadcaster.pool.directory.indices {
      // The current table is not freed while this thread holds the lock.
      guard take(Lock.names) else { return }
      let name = Broadcaster.table(at: index)?.name(of: multicast)
      if let name { text.keep(name) }
      Lock.names.unlock()
      if name != nil { return }
    }
  }

  /// Adds a delegate and its label, and says if it has been removed. For a removed delegate without
  /// a label, also adds the function, because the delegate is no longer listed with its multicast.
  mutating func addName(of token: Token) {
    text.keep(nil)
    var isRetired = false
    var function: UInt64 = 0
    if let registration = Registration(slotOf: token) {
      let owner = registration.owner
      let mutex = Stripe(of: owner).mutex
      if take(mutex) {
        // If the slot has moved to another stripe, the token is stale.
        if let id = registration.id(guardedAs: owner) {
          isRetired = id == token.changed(to: .retired)
          if isRetired || id.isLive(as: token) { text.keep(registration.label) }
          if isRetired && !text.hasLabel {
            function = UInt64(unsafeBitCast(registration.storage.pointee.function, to: UInt.self))
          }
        }
        mutex.unlock()
      }
    }
    text.add("delegate %x%l", token.rawValue)
    if isRetired { text.add(" (removed)") }
    if function != 0 { addPlace(function) }
  }
}

// The stripe's lock is held.

extension Multicast {
  fileprivate var label: UnsafeMutablePointer<shims_label>? {
    hasPolicies ? withUnsafeMutablePointer(to: &policies.storage.pointee.label) { $0 } : nil
  }
}
