import MulticastHeader
import MulticastShims
import Synchronization

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

  /// From now on, reports changes to this multicast's delegates. Does nothing if they have already
  /// been started or the multicast does not exist. The multicast must not have policies.
  ///
  /// Concurrent invocations are not affected. Adds and removals read the bit under the stripe's
  /// lock. An add or removal that takes the lock later does not use the fast paths, which do not
  /// notify. The caller of this function checks for earlier changes itself.
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

  /// Release: pairs with the acquire of a thread that is still reading these policies for the
  /// slot's previous multicast, so that the reader finds that its multicast has ended.
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
