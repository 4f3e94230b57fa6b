import MulticastHeader
import MulticastShims
import Synchronization

/// The ways in which a multicast differs from a plain multicast. Most multicasts have no policies.
/// A bit of the invoker word, which each invocation compares anyway, says whether a multicast has
/// policies, so other multicasts pay nothing.
///
/// The policies of a multicast are in a separate slot, which is never unmapped. A thread may read
/// some of them at any time without a lock. It then checks whether the multicast's slot still
/// contains the multicast's handle. If so, the thread has read the policies of this multicast.
struct Policies {
  struct Storage: ~Copyable {
    var header: SlotHeader

    // Fields that invocations read.

    let rules: Atomic<UInt32>
    /// Lock and unlock functions for delegates that have none of their own; 0 if unset.
    let lockContext: Atomic<UInt>
    let unlockContext: Atomic<UInt>

    // Fields that are read under the stripe's lock.

    var releaseContext: RegistrationDetails.Release?
    var notifier: Notifier
    var replay: Replay
    var label: shims_label
  }

  static var pool: SlotPool { SlotPool(.policies, stride: MemoryLayout<Storage>.stride) }

  private static let hasStarted = Atomic<Bool>(false)

  /// Whether there has ever been a multicast whose removals must be reported or may end a replay.
  ///
  /// Relaxed is enough. A thread that added a delegate to such a multicast knew the multicast's
  /// handle, and took its stripe's lock. A thread that removes the delegate takes the same lock
  /// later.
  static var haveToKnow: Bool { hasStarted.load(ordering: .relaxed) }

  /// Called before a caller receives the handle of such a multicast, and before a multicast is
  /// observed.
  static func start() { hasStarted.store(true, ordering: .relaxed) }

  let storage: UnsafeMutablePointer<Storage>

  init(_ slot: UnsafeMutableRawPointer) {
    storage = slot.assumingMemoryBound(to: Storage.self)
  }

  /// The policies in an allocated slot.
  init(slot index: UInt32) { self.init(Self.pool.directory.slot(index).unsafelyUnwrapped) }

  /// The policies of the multicast that now uses the slot or, if it has none, of a previous
  /// multicast in the slot. If no multicast in the slot has ever had policies, these are the first
  /// policies that were ever created. At least one multicast must have been created with policies.
  init(of multicast: Multicast) {
    // Acquire: pairs with the release in `connect`.
    self.init(slot: multicast.fields.header.owner.load(ordering: .acquiring))  // order: policies
  }

  var locks: ContextLock {
    ContextLock(
      storage.pointee.lockContext.load(ordering: .acquiring),  // order: rules
      storage.pointee.unlockContext.load(ordering: .acquiring))
  }

  /// The rules of the multicast, or of a later multicast in its slot.
  ///
  /// Acquire: pairs with the release in `write`.
  // order: rules
  var currentRules: Rules { Rules(word: storage.pointee.rules.load(ordering: .acquiring)) }

  /// The rules, stored in one word so that a single load reads all of them.
  struct Rules {
    /// The behavior of an invocation inside a call from the same multicast.
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
    /// Whether invocations are kept, so that they may reach delegates that are added later.
    var keepInvocations: Bool { hasReplay || reentry == .postpone || reentry == .latest }
  }
}

extension Options {
  /// Sets the options that a delegate leaves unset to the multicast's defaults. If the delegate has
  /// details, they contain a copy of the defaults.
  fileprivate mutating func complete(_ policies: Policies) {
    if given.release == nil { sharedRelease = policies.storage.pointee.releaseContext }
    // `isObserved` and `isReplayed` make the add allocate details, which name the multicast to
    // consult when the registration ends.
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
  /// Whether the multicast has policies. False if this multicast no longer uses its slot: in that
  /// case, the invoker number contains the difference between two generations, or `handle` is not a
  /// multicast's handle.
  var hasPolicies: Bool {
    let number = invokerNumber
    return handle.kind == .multicast && number < Handle.oneGeneration
      && number & Self.withPolicies != 0
  }

  /// Whether changes to the delegates are reported although the multicast was created without
  /// policies. The bit changes under the stripe's lock, and stays set if the slot is kept for the
  /// next multicast with the same name (see `renew`).
  var isObserved: Bool {
    get { invokerNumber & Self.observed != 0 }
    nonmutating set {
      invokerNumber = invokerNumber & ~Self.observed | (newValue ? Self.observed : 0)
    }
  }

  /// The policies of an existing multicast that has policies. The caller holds the stripe's lock.
  var policies: Policies { Policies(of: self) }

  /// Completes the options of an add to a multicast with policies.
  ///
  /// - Returns: whether the multicast exists. If not, the caller must not add anything, because the
  ///   handle may have been guessed, and may belong to a multicast with policies a moment later.
  func complete(_ options: inout Options?) -> Bool {
    guard isCurrent else { return false }
    guard hasPolicies, var completed = options, !completed.isContradictory else { return true }
    stripe.lock()
    defer { stripe.unlock() }
    guard isCurrent else { return false }
    completed.complete(policies)
    options = completed
    return true
  }

  /// Whether the multicast's delegates can only be visited, not invoked. False if the multicast
  /// does not exist.
  var isVisitOnly: Bool {
    do throws(Status) { return try rules().isVisitOnly } catch { return false }
  }

  /// The rules of the multicast, or the default rules if it has no policies. No lock is held.
  ///
  /// A thread that reads the rules of a later multicast in the slot finds that the handle has
  /// ended.
  func rules() throws(Status) -> Policies.Rules {
    if isCurrent {
      let rules = hasPolicies ? Policies(of: self).currentRules : Policies.Rules(word: 0)
      if fields.header.id.load(ordering: .relaxed) == handle { return rules }
    }
    throw .invalidHandle
  }
}
