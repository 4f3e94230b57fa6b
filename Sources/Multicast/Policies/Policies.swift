import MulticastHeader
import MulticastShims
import Synchronization

/// The ways in which a multicast differs from a plain one. Most multicasts have no policies. A bit
/// of the word that an invocation compares says which ones have some, so the invocation does not
/// ask.
///
/// The policies of a multicast are in a slot, which is never unmapped. A thread may read some of
/// them without a lock, at any time. It looks afterwards whether the multicast is still the
/// occupant of its slot; if so, what it has read are the policies of this multicast.
struct Policies {
  struct Storage: ~Copyable {
    var header: SlotHeader

    // Read by invocations.

    let rules: Atomic<UInt32>
    /// Functions for the contexts of delegates that have none of their own, or 0.
    let lockContext: Atomic<UInt>
    let unlockContext: Atomic<UInt>

    // Read under the stripe's lock.

    var releaseContext: RegistrationDetails.Release?
    var notifier: Notifier
    var replay: Replay
    var label: shims_label
  }

  static var pool: SlotPool { SlotPool(.policies, stride: MemoryLayout<Storage>.stride) }

  private static let hasStarted = Atomic<Bool>(false)

  /// Whether there ever was a multicast whose removals are notified, or concern a replay.
  ///
  /// Relaxed: a thread that removes a delegate of such a multicast has taken its stripe's lock, as
  /// the add had before, by a thread that knew the multicast's handle.
  static var haveToKnow: Bool { hasStarted.load(ordering: .relaxed) }

  /// Called before the first such multicast is given out, or observed.
  static func start() { hasStarted.store(true, ordering: .relaxed) }

  let storage: UnsafeMutablePointer<Storage>

  init(_ slot: UnsafeMutableRawPointer) {
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  /// Those in a slot that has been allocated.
  init(slot index: UInt32) { self.init(Self.pool.directory.slot(index).unsafelyUnwrapped) }

  /// Those of the occupant of a multicast's slot, if it has any. Otherwise those of an earlier
  /// occupant or, if none had any, the first ones that were made. Some were made.
  init(of multicast: Multicast) {
    // Acquire: pairs with `Multicast.create(with:)`.
    self.init(slot: multicast.fields.header.owner.load(ordering: .acquiring))  // order: policies
  }

  var locks: ContextLock {
    ContextLock(
      storage.pointee.lockContext.load(ordering: .acquiring),  // order: rules
      storage.pointee.unlockContext.load(ordering: .acquiring))
  }

  /// Those of the multicast, or of a later occupant of its slot.
  ///
  /// Acquire: pairs with `write`.
  // order: rules
  var currentRules: Rules { Rules(word: storage.pointee.rules.load(ordering: .acquiring)) }

  /// In one word, because they are read at one moment.
  struct Rules {
    /// How an invocation behaves inside a call of the same multicast.
    enum Reentry: UInt32 { case recurse, refuse, postpone, latest }

    private static let visitOnly: UInt32 = 1 << 8
    private static let listenersChanged: UInt32 = 1 << 9
    private static let replay: UInt32 = 1 << 10

    let word: UInt32

    init(word: UInt32) { self.word = word }
    init(_ reentry: Reentry, isVisitOnly: Bool, notifiesListenersChanged: Bool, hasReplay: Bool) {
      word =
        reentry.rawValue | (isVisitOnly ? Self.visitOnly : 0)
        | (notifiesListenersChanged ? Self.listenersChanged : 0)
        | (hasReplay ? Self.replay : 0)
    }

    var reentry: Reentry { Reentry(rawValue: word & 0xFF).unsafelyUnwrapped }
    var isVisitOnly: Bool { word & Self.visitOnly != 0 }
    var notifiesListenersChanged: Bool { word & Self.listenersChanged != 0 }
    var hasReplay: Bool { word & Self.replay != 0 }
    /// Whether delegates that are added later may get an invocation.
    var keepInvocations: Bool { hasReplay || reentry == .postpone || reentry == .latest }
  }
}

extension Options {
  /// Takes over what the multicast has for delegates whose options have none. The details of a
  /// delegate have a copy of it, if it has details.
  fileprivate mutating func complete(_ policies: Policies) {
    if given.release == nil { sharedRelease = policies.storage.pointee.releaseContext }
    // The end of a registration with details looks at the multicast that they name.
    let rules = policies.currentRules
    isObserved = rules.notifiesListenersChanged
    isReplayed = rules.hasReplay && given.flags & MULTICAST_NO_REPLAY == 0
    let locks = policies.locks
    if isWeak || locks.lock == nil { return }
    if !needsDetails { return sharesLock = true }
    (given.lock, given.unlock) = (locks.lock, locks.unlock)
  }
}

extension Multicast {
  /// Whether it has policies. False if it is not the occupant of its slot: then the number has a
  /// generation, or the handle is not that of a multicast.
  var hasPolicies: Bool {
    let number = invokerNumber
    return handle.kind == .multicast && number < Handle.oneGeneration
      && number & Self.withPolicies != 0
  }

  /// Whether its changes are notified, although it has no policies of its own. Set and cleared
  /// under the stripe's lock; kept with the slot: see `renew`.
  var isObserved: Bool {
    get { invokerNumber & Self.observed != 0 }
    nonmutating set {
      invokerNumber = invokerNumber & ~Self.observed | (newValue ? Self.observed : 0)
    }
  }

  /// The policies of a multicast that exists, and has some. The stripe's lock is held.
  var policies: Policies { Policies(of: self) }

  /// Completes the options of an add to a multicast that has policies.
  ///
  /// - Returns: whether the multicast exists. If not, nothing may be added to it: a handle that is
  ///   guessed may be that of a multicast with policies a moment later.
  func complete(_ options: inout Options?) -> Bool {
    guard isCurrent else { return false }
    guard hasPolicies, var completed = options else { return true }
    stripe.lock()
    defer { stripe.unlock() }
    guard isCurrent else { return false }
    if completed.isContradictory { return true }
    completed.complete(policies)
    options = completed
    return true
  }

  /// Whether its contexts are not for `multicast_invoke`. False if it does not exist.
  var isVisitOnly: Bool {
    do throws(Status) { return try rules().isVisitOnly } catch { return false }
  }

  /// The rules of a multicast: the defaults if it has no policies. No lock is held.
  ///
  /// A thread that reads what the next occupant of the slot wrote finds that the handle has ended.
  func rules() throws(Status) -> Policies.Rules {
    if isCurrent {
      let rules = hasPolicies ? Policies(of: self).currentRules : Policies.Rules(word: 0)
      if fields.header.id.load(ordering: .relaxed) == handle { return rules }
    }
    throw .invalidHandle
  }
}
