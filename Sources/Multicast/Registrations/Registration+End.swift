import MulticastShims
import Synchronization

/// The end of a retired registration: it is reclaimed and released.
extension Registration {
  /// Puts the slot back into the pool. No call of the delegate can be running.
  ///
  /// - Returns: the pending cleanup, which belongs to the caller.
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

  /// Like `reclaim`, but for a registration without a pending cleanup.
  func putBack(to stripe: Stripe) {
    id = id.changed(to: .vacant)  //~ reclaimed_not_vacant
    checkReclaimed(to: stripe)
    stripe.pool(in: Self.directory).putBack(index, slot)  //~ reclaimed_twice
  }
}

extension RegistrationChain {
  /// Takes out all registrations that no thread is calling.
  ///
  /// - Parameter token: If given, only the registration of this token.
  mutating func extractUncalled(_ token: Token = .none) -> RegistrationChain {
    //~ released_during_other_call
    extract { (token.isNone || $0.token == token) && !ThreadRegistry.isCalled($0.token) }
  }

  /// Like `extractUncalled`, but for many registrations: reads the frames of all threads once, and
  /// notes in each slot whether the registration is being called. Another thread may have made such
  /// a note for a call that has ended since. This does no harm, because the hazards are read once
  /// more before a thread waits for the registration.
  mutating func extractUncalledOfMany() -> RegistrationChain {
    for registration in self { registration.clearCalled() }
    for record in ThreadRegistry.all {
      record.forEachFrame { _, token in if !token.isNone { Registration.setCalled(token) } }
    }
    return extract { !$0.has(Registration.Flags.called) }  //~ no_wait_for_calls
  }

  /// Every registration that was removed and is not reclaimed yet, in the child of a fork. The
  /// chains of the parent's threads are lost with their stacks, but each registration is still in
  /// its slot until its turn to be reclaimed. Slots change under the locks of their stripes, which
  /// the fork has held. So if a registration is not found here, its release function had begun or
  /// was about to begin.
  static func allRetiredInChild() -> RegistrationChain {
    var all = RegistrationChain()
    for index in Registration.directory.indices {
      let registration = Registration(index: index)
      if registration.id.kind == .retired { all.push(registration) }
    }
    return all
  }

  /// Reclaims all of these registrations, and runs their release functions in order. No call of
  /// their delegates can be running, and no lock is held.
  consuming func reclaimAndRelease() {
    let process = Fork.generation
    // Registrations without a release function come first. A release function of another
    // registration may end a lifetime, and would wait for them.
    if !isEmpty && !hasOne { extract { !$0.hasRelease }.reclaimEach(in: process) }
    reclaimEach(in: process)
  }

  @_optimize(speed)
  private consuming func reclaimEach(in process: UInt32) {
    // A registration stays in its slot until its turn, because its context is stored nowhere else.
    // If a release function forks, the fork itself reclaims the rest in the child.
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

/// The pending cleanup of a reclaimed registration: the release function that is due, and the
/// details.
struct PendingCleanup {
  var details: RegistrationDetails.Address? = nil
  /// The release function of a registration that has no details.
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
  /// No step that could take time comes before the release function. Otherwise a fork on another
  /// thread would be more likely to come in between, and its child would not run the release
  /// function.
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
