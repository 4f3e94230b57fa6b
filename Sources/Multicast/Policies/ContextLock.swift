import Synchronization

/// The functions that turn the context of a delegate into a strong pointer, and back.
struct ContextLock {
  var lock: RegistrationDetails.Lock? = nil
  var unlock: RegistrationDetails.Unlock? = nil

  /// Those of a registration that this thread's hazard protects: its own, or its multicast's. For
  /// the latter the caller looks afterwards whether the registration is live. If it is, then the
  /// multicast exists, and these are its functions.
  ///
  /// Acquire: pairs with `Policies.write`. A thread that sees the next occupant's values sees that
  /// the registration was removed before.
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
