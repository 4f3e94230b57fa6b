import Synchronization

/// The function that turns a delegate's context into a strong pointer, and the function that
/// releases that pointer.
struct ContextLock {
  var lock: RegistrationDetails.Lock? = nil
  var unlock: RegistrationDetails.Unlock? = nil

  /// Reads the functions for a registration protected by this thread's hazard. The functions belong
  /// either to the registration or to its multicast. If they belong to the multicast, the caller
  /// then checks whether the registration is live. If so, the multicast exists, so the functions
  /// are correct.
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
