import MulticastShims
import Synchronization

/// The end of a registration that was retired: it is reclaimed and released.
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

  /// The same, for a registration without pending cleanup.
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

  /// The same for many registrations: reads the frames of all threads once, and notes in each slot
  /// whether it is called. A note that another thread has made, of a call that has ended since,
  /// does no harm: the registration is looked at once more before a thread waits for it.
  mutating func extractUncalledOfMany() -> RegistrationChain {
    for registration in self { registration.clearCalled() }
    for record in ThreadRegistry.all {
      record.forEachFrame { _, token in if !token.isNone { Registration.setCalled(token) } }
    }
    return extract { !$0.has(Registration.Flags.called) }  //~ no_wait_for_calls
  }

  /// In the child of a fork: every registration that was removed and is not reclaimed yet. The
  /// chains of the parent's threads are lost with their stacks. Each registration is still in its
  /// slot until its turn to be reclaimed. Slots change under the locks of their stripes, which the
  /// fork has held. So a release function that is not found here had begun, or was just beginning.
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
    // Registrations without a release function first: another's release function may end a
    // lifetime, and would wait for them.
    if !isEmpty && !hasOne { extract { !$0.hasRelease }.reclaimEach(in: process) }
    reclaimEach(in: process)
  }

  @_optimize(speed)
  private consuming func reclaimEach(in process: UInt32) {
    // A registration stays in its slot until its turn. There is no other place for its context. If
    // a release function forks, the fork itself reclaims the rest in the child.
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
  /// Of a registration that has no details.
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
  /// No step that could take time comes before the release function: another thread may fork, and
  /// its child does not run a release function that was about to begin here.
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
