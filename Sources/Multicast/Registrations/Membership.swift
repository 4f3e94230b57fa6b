/// The links of a registration in a lifetime's list of members. The lifetime's lock guards all
/// fields except `lifetime`, which never changes.
struct Membership {
  /// A registration can be a member of one lifetime per role.
  enum Role: Int {
    /// The lifetime in the options of the add.
    case owned = 0
    /// The lifetime of the queue to which the registration delivers.
    case recipient = 1

    /// The kind of the handles of lifetimes in this role.
    var kind: Handle.Kind { self == .owned ? .lifetime : .recipients }
  }

  static let roleCount = 2

  /// The handle of the lifetime, or none.
  var lifetime: Handle
  // The indices of two registrations, plus 1.
  var previous: UInt32 = 0
  var next: UInt32 = 0

  static func of(
    _ registration: Registration, _ role: Role
  ) -> UnsafeMutablePointer<Membership>? {
    guard let details = registration.details else { return nil }
    return RegistrationDetails.membership(of: details, role)
  }

  private static func of(_ link: UInt32, _ role: Role) -> UnsafeMutablePointer<Membership>? {
    link == 0 ? nil : of(Registration(index: link &- 1), role)
  }

  static func push(_ registration: Registration, _ role: Role, _ list: inout UInt32) {
    let membership = of(registration, role).unsafelyUnwrapped
    membership.pointee.previous = 0
    membership.pointee.next = list
    of(list, role)?.pointee.previous = registration.index &+ 1  //~ member_without_previous
    list = registration.index &+ 1
  }

  static func remove(_ registration: Registration, _ role: Role, _ list: inout UInt32) {
    let membership = of(registration, role).unsafelyUnwrapped.pointee
    of(membership.next, role)?.pointee.previous = membership.previous
    if let previous = of(membership.previous, role) {
      previous.pointee.next = membership.next
    } else {
      list = membership.next
    }
  }
}
