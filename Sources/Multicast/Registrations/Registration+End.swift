import MulticastShims
import Synchronization

/// The end of a retired registration: it is reclaimed and then released.
extension Registration {
  /// Returns the slot to the pool. Requires that no call to the delegate is running. The caller has
  /// to run the cleanup that this function returns.
  @discardableResult
  func reclaim(to stripe: Stripe) -> PendingCleanup {
    var cleanup = PendingCleanup()
    if has(Flags.releasing) {
      cleanup.release = unsafeBitCast(storage.pointee.word, to: RegistrationDetails.Release?.self)
      cleanup.context = storage.pointee.context
    } else {
      cleanup.details = details
    }
    storage.pointee.word = nil  //~ details_left_in_slot
    putBack(to: stripe)
    return cleanup
  }

  /// Like `reclaim`, for a registration without a pending cleanup.
  func putBack(to stripe: Stripe) {
    id = id.changed(to: .vacant)  //~ reclaimed_not_vacant
    checkReclaimed(to: stripe)
    stripe.pool(in: Self.directory).putBack(index, slot)  //~ reclaimed_twice
  }
}

extension RegistrationChain {
  /// Extracts all registrations whose delegates are not being called by any thread. If a token is
  /// passed, considers only that token's registration.
  mutating func extractUncalled(_ token: Token = .none) -> RegistrationChain {
    //~ released_during_other_call
    extract { (token.isNone || $0.token == token) && !ThreadRegistry.isCalled($0.token) }
  }

  /// Like `extractUncalled`, but efficient for many registrations: reads the frames of all threads
  /// only once, and marks the slot of each registration that is being called. Another thread may
  /// have set a mark for a call that has since returned. A mark for such a call is harmless,
  /// because a thread reads the hazards again before it waits for a registration.
  mutating func extractUncalledOfMany() -> RegistrationChain {
    for registration in self { registration.clearCalled() }
    for record in ThreadRegistry.all {
      record.forEachFrame { _, token in if !token.isNone { Registration.setCalled(token) } }
    }
    return extract { !$0.has(Registration.Flags.called) }  //~ no_wait_for_calls
  }

  /// In the child of a fork, returns all registrations that have been removed but not yet
  /// reclaimed. The chains of the parent's threads are lost with their stacks, but each
  /// registration is still in its slot until it is reclaimed. Slots change only under their
  /// stripes' locks, which the forking thread held. So if a removed registration is not found, it
  /// had been reclaimed before the fork, and its release function had started or was about to
  /// start.
  static func allRetiredInChild() -> RegistrationChain {
    var all = RegistrationChain()
    for index in Registration.directory.indices {
      let registration = Registration(index: index)
      if registration.id.kind == .retired { all.push(registration) }
    }
    return all
  }

  /// Reclaims all of these registrations, and runs their release functions in order. Requires that
  /// no call to their delegates is running, and that no lock is held.
  consuming func reclaimAndRelease() {
    let process = Fork.generation
    // Reclaim the registrations without a release function first, because the release function of
    // another registration might end a lifetime and wait for them.
    if !isEmpty && !hasOne { extract { !$0.hasRelease }.reclaimEach(in: process) }
    reclaimEach(in: process)
  }

  @_optimize(speed)
  private consuming func reclaimEach(in process: UInt32) {
    // A registration stays in its slot until it is reclaimed, because its context is stored nowhere
    // else. If a release function forks, the child's fork handler finds the remaining registrations
    // in their slots and reclaims them, so this loop must stop in the child.
    while process == Fork.generation, let registration = pop() {
      RaceDetector.didRemove(registration.storage)
      let stripe = Stripe(of: registration.owner)  //~ reclaimed_to_wrong_stripe
      stripe.lockInline()
      let cleanup = registration.reclaim(to: stripe)
      stripe.unlockInline()
      cleanup.run()  //~ released_under_lock
    }
  }
}

/// The cleanup that remains to be done after a registration has been reclaimed: calling its release
/// function, if any, and freeing its details.
struct PendingCleanup {
  var details: RegistrationDetails.Address? = nil
  /// The release function of a registration without details.
  var release: RegistrationDetails.Release? = nil
  var context: UnsafeMutableRawPointer? = nil

  /// Runs the release function, and frees the details. No lock is held.
  func run() {
    if let details { return RegistrationDetails.release(details) }
    if let release { Self.run(release, context) }
  }

  static func run(_ release: RegistrationDetails.Release, _ context: UnsafeMutableRawPointer?) {
    let depth = shims_get_release_depth()
    shims_set_release_depth(depth &+ 1)
    CallerCode.releasing { release(context) }  //~ released_twice
    shims_set_release_depth(depth)
  }
}

extension RegistrationDetails {
  /// Runs the release function, if any, and frees the details. No lock is held.
  ///
  /// Do nothing slow before calling the release function. If another thread forks in the meantime,
  /// the child never calls the function.
  static func release(_ details: RegistrationDetails.Address) {
    let (release, context) = (details.pointee.release, details.pointee.context)
    let lifetime = membership(of: details, .owned).pointee.lifetime
    let queue = membership(of: details, .recipient).pointee.lifetime
    if let release { PendingCleanup.run(release, context) }
    deallocate(details)
    if !lifetime.isNone { Lifetime.memberIsGone(lifetime) }
    if !queue.isNone { Lifetime.memberIsGone(queue) }
  }
}
