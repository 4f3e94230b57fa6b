import Synchronization

/// The functions that turn a delegate's context into a strong pointer, and release that pointer.
struct ContextLock {
  var lock: RegistrationDetails.Lock? = nil
  var unlock: RegistrationDetails.Unlock? = nil

  /// Reads the functions of a registration that this thread's hazard protects. They are its own
  /// functions, or those of its multicast. In the second case, the caller afterwards checks whether
  /// the registration is live. If it is, the multicast exists, and the functions are the right
  /// ones.
  ///
  /// Acquire: pairs with `Policies.write`. A thread that reads the functions of a later multicast
  /// also sees that the registration was removed.
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
