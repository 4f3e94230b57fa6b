import MulticastHeader
import MulticastShims
import Synchronization

/// The ways in which a multicast differs from a plain multicast.
///
/// Policies are in a separate slot. A thread may read some of them without a lock, and then checks
/// whether the multicast's slot still contains the multicast's handle. If it does, the thread has
/// read the policies of this multicast.
struct Policies {
  struct Storage: ~Copyable {
    var header: SlotHeader

    // Fields that invocations read.

    let rules: Atomic<UInt32>
    /// The lock and unlock functions for delegates that have none of their own, or 0.
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

  /// The rules of the multicast, or of a later multicast in its slot. Acquire: pairs with the
  /// release in `write`.
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
  /// Replaces the options that a delegate leaves unset with the multicast's defaults. If the
  /// delegate has details, they contain a copy of the defaults.
  fileprivate mutating func complete(_ policies: Policies) {
    if given.release == nil { sharedRelease = policies.storage.pointee.releaseContext }
    // `isObserved` and `isReplayed` make the add allocate details. The details name the multicast
    // to consult when the registration ends.
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
  /// Whether the multicast has policies. False if another multicast now uses the slot, because the
  /// invoker number then contains the difference between the two generations. It is also false if
  /// `handle` is not a multicast's handle.
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
  /// - Returns: whether the multicast exists. If it does not, the caller must not add anything,
  ///   because the handle may have been guessed, and may belong to a multicast with policies a
  ///   moment later.
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
  /// If the thread has read the rules of a later multicast in the slot, it then finds that the
  /// handle has ended, and this function throws.
  func rules() throws(Status) -> Policies.Rules {
    if isCurrent {
      let rules = hasPolicies ? Policies(of: self).currentRules : Policies.Rules(word: 0)
      if fields.header.id.load(ordering: .relaxed) == handle { return rules }
    }
    throw .invalidHandle
  }
}

/// The function that turns a delegate's context into a strong pointer, and the function that
/// releases that pointer.
struct ContextLock {
  var lock: RegistrationDetails.Lock? = nil
  var unlock: RegistrationDetails.Unlock? = nil

  /// Reads the functions for a registration protected by this thread's hazard. The functions belong
  /// either to the registration or to its multicast. If they belong to the multicast, the caller
  /// then checks whether the registration is live. If it is live, the multicast exists, so the
  /// functions are correct.
  ///
  /// Acquire: pairs with the releases in `Policies.write`. A thread that reads the functions of a
  /// later multicast also sees that the registration has been removed.
  init(_ registration: Registration) {
    if _slowPath(registration.has(Registration.Flags.shared)) {
      self = Policies(of: Multicast(slot: registration.owner)).locks
    } else if let details = registration.details {
      lock = details.pointee.lock
      unlock = details.pointee.unlock
    }
  }

  init(lock: RegistrationDetails.Lock?, unlock: RegistrationDetails.Unlock?) {
    self.lock = lock
    self.unlock = unlock
  }

  init(_ lock: UInt, _ unlock: UInt) {
    self.lock = unsafeBitCast(lock, to: RegistrationDetails.Lock?.self)
    self.unlock = unsafeBitCast(unlock, to: RegistrationDetails.Unlock?.self)
  }
}

/// The options of a new multicast: a caller's `multicast_create_options`, already checked.
struct CreateOptions {
  let given: multicast_create_options
  let rules: Policies.Rules

  /// Whether the options have no effect, so that a plain multicast is sufficient.
  var isPlain: Bool {
    rules.word == 0 && given.label == nil && given.lock_context == nil
      && given.release_context == nil && given.listeners_changed == nil && given.release == nil
  }
}

extension CreateOptions {
  init(_ given: UnsafePointer<multicast_create_options>) throws(Status) {
    guard StructSize.isValid(given, smallest: StructSize.createOptions) else {
      throw .invalidArgument
    }
    let options = given.pointee
    guard options.flags & ~MULTICAST_VISIT_ONLY == 0,
      let reentry = Policies.Rules.Reentry(rawValue: options.reentry),
      (options.lock_context == nil) == (options.unlock_context == nil)
    else { throw .invalidArgument }
    self.given = options
    rules = Policies.Rules(
      reentry, isVisitOnly: options.flags & MULTICAST_VISIT_ONLY != 0,
      notifiesListenersChanged: options.listeners_changed != nil,
      hasReplay: options.replay != 0)
  }
}

extension Multicast {
  /// - Parameter given: The caller's options; nil for the defaults.
  /// - Returns: the handle of an empty multicast.
  static func create(
    with given: UnsafePointer<multicast_create_options>?
  ) throws(Status) -> Handle {
    guard let given else { return try create() }
    let options = try CreateOptions(given)
    if options.isPlain { return try create() }
    let notifier = Policies.Notifier(
      function: options.given.listeners_changed.map { .listenersChanged($0) },
      context: options.given.context,
      release: options.given.release)
    let policies = try Policies.make(options, notifier)
    do throws(Status) {
      return try create(.multicast) { storage, handle in
        initialize(storage, handle, withPolicies)
        policies.connect(to: storage, handle)
        //~ listeners_changed_without_policies
        if options.rules.keepInvocations { setListenerFlagForever(storage) }
      }
    } catch {
      policies.giveBack()
      throw error
    }
  }

  /// Makes the multicast call `notifier` when its delegates change. Does nothing if the multicast
  /// already has a notifier or does not exist. The multicast must not have policies.
  ///
  /// Concurrent invocations are not affected. Adds and removals read `isObserved` under the
  /// stripe's lock. An add or removal that takes the lock later does not use the fast paths, which
  /// do not notify. The caller of this function checks for earlier changes itself.
  ///
  /// - Returns: false if it did nothing.
  func observe(_ notifier: Policies.Notifier) throws(Status) -> Bool {
    let rules = Policies.Rules(
      .recurse, isVisitOnly: false, notifiesListenersChanged: true, hasReplay: false)
    let options = CreateOptions(given: multicast_create_options(), rules: rules)
    let policies = try Policies.make(options, notifier)
    stripe.lock()
    let isNew = isCurrent && !isObserved
    if isNew {
      policies.connect(to: storage, handle)
      isObserved = true
    }
    stripe.unlock()
    if !isNew { policies.giveBack() }
    return isNew
  }
}

extension Policies {
  fileprivate static func make(
    _ options: CreateOptions, _ notifier: Notifier
  ) throws(Status) -> Policies {
    let rules = options.rules
    if rules.notifiesListenersChanged || rules.hasReplay { start() }
    let made = try pool.create(.policies) { (storage: UnsafeMutablePointer<Storage>, _) in
      Policies(storage).write(options, notifier)
    }
    return Policies(slot: made.index)
  }

  fileprivate func connect(
    to multicast: UnsafeMutablePointer<Multicast.Storage>, _ handle: Handle
  ) {
    storage.pointee.notifier.multicast = handle
    let index = storage.pointee.header.id.load(ordering: .relaxed).index
    // Release: pairs with the acquire in `Policies.init(of:)`.
    multicast.pointee.header.owner.store(index, ordering: .releasing)  // order: policies
  }

  /// Sets all fields. A thread may still be reading these policies for the multicast that had them
  /// before. Release: pairs with that thread's acquire, so that the thread finds that its multicast
  /// has ended.
  private func write(_ options: CreateOptions, _ notifier: Notifier) {
    let given = options.given
    storage.pointee.rules.store(options.rules.word, ordering: .releasing)  // order: rules
    storage.pointee.lockContext.store(
      unsafeBitCast(given.lock_context, to: UInt.self), ordering: .releasing)  // order: rules
    storage.pointee.unlockContext.store(
      unsafeBitCast(given.unlock_context, to: UInt.self), ordering: .releasing)  // order: rules
    storage.pointee.releaseContext = given.release_context
    storage.pointee.notifier = notifier
    storage.pointee.replay = Replay(most: given.replay)
    shims_copy_label(&storage.pointee.label, given.label)
  }

  /// Ends the use of these policies, whose multicast has ended or was never created.
  func giveBack() {
    var payloads = ReleasedPayloads()
    storage.pointee.replay.dropAll(&payloads)  //~ kept_not_dropped
    let id = storage.pointee.header.id.load(ordering: .relaxed)
    storage.pointee.header.id.store(id.changed(to: .vacant), ordering: .relaxed)
    Self.pool.reclaim(id.index)
    payloads.cleanUp()
  }
}
