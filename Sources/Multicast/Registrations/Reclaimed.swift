import MulticastShims

/// What a registration leaves that was reclaimed: its release function is due, and its details.
struct Reclaimed {
  var details: UnsafeMutablePointer<RegistrationDetails>? = nil
  /// Of a registration that has no details.
  var release: RegistrationDetails.Release? = nil
  var context: UnsafeMutableRawPointer? = nil

  /// Runs the release function, and frees the details. No lock is held.
  func finish() {
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
