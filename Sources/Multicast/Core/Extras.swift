import CMulticast
import MulticastShims

/// What few registrations have: kept apart so that the many stay small.
struct Extras {
  typealias Release = @convention(c) (_ context: UnsafeMutableRawPointer?) -> Void

  typealias Lock =
    @convention(c) (_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?
  typealias Unlock = @convention(c) (_ strong: UnsafeMutableRawPointer?) -> Void

  var release: Release?
  var function: multicast_function?
  var context: UnsafeMutableRawPointer?
  var events: UInt64
  var lock: Lock?
  var unlock: Unlock?
  /// The handle of the multicast.
  var multicast: UInt64 = 0
  /// The slot of the queue that its calls wait in, if they do.
  var queue: UnsafeMutableRawPointer?
  /// Where the newest of them stands in that queue, if it is there still. The queue's.
  var lastCall: UInt64 = 0
  var flags: UInt32
  var priority: Int32
  /// The next of a chain whose releases are due.
  var next: UnsafeMutablePointer<Extras>?

  /// With a membership for each role behind it.
  private static let size =
    MemoryLayout<Extras>.stride + Membership.roleCount * MemoryLayout<Membership>.stride
  private static let alignment = 16

  static func allocate(
    _ options: Options, _ delegate: multicast_delegate
  ) -> UnsafeMutablePointer<Extras>? {
    guard let block = Allocator.allocate(size: size, alignment: alignment) else { return nil }
    let extras = block.bindMemory(to: Extras.self, capacity: 1)
    extras.initialize(
      to: Extras(
        release: options.release, function: delegate.function, context: delegate.context,
        events: options.events, lock: options.lock, unlock: options.unlock,
        queue: options.destination?.queue, flags: options.flags, priority: options.priority,
        next: nil))
    membership(of: extras, .owned).initialize(to: Membership(lifetime: options.lifetime))
    membership(of: extras, .recipient).initialize(
      to: Membership(lifetime: options.destination?.recipients ?? 0))
    return extras
  }

  static func deallocate(_ extras: UnsafeMutablePointer<Extras>) {
    Allocator.deallocate(extras, size: size, alignment: alignment)
  }

  static func membership(
    of extras: UnsafeMutablePointer<Extras>, _ role: Membership.Role
  ) -> UnsafeMutablePointer<Membership> {
    (UnsafeMutableRawPointer(extras) + MemoryLayout<Extras>.stride)
      .assumingMemoryBound(to: Membership.self) + role.rawValue
  }

  /// Runs the releases of a chain and frees it. No lock is held, and nothing of the chain is
  /// touched once its release has begun: that may call anything.
  static func release(_ chain: UnsafeMutablePointer<Extras>?) {
    // First those that have none: a release may end a lifetime that waits for nothing else.
    var next = chain
    var due: UnsafeMutablePointer<Extras>? = nil
    var last = due
    while let extras = next {
      next = extras.pointee.next
      if extras.pointee.release == nil {
        finish(extras)
        continue
      }
      extras.pointee.next = nil
      if let last { last.pointee.next = extras } else { due = extras }
      last = extras
    }
    while let extras = due {
      due = extras.pointee.next
      finish(extras)
    }
  }

  private static func finish(_ extras: UnsafeMutablePointer<Extras>) {
    let (release, context) = (extras.pointee.release, extras.pointee.context)
    let lifetime = membership(of: extras, .owned).pointee.lifetime
    let queue = membership(of: extras, .recipient).pointee.lifetime
    deallocate(extras)
    if let release {
      let depth = shims_get_release_depth()
      shims_set_release_depth(depth &+ 1)
      CallerCode.releasing { release(context) }
      shims_set_release_depth(depth)
    }
    if lifetime != 0 { Lifetime.memberIsGone(lifetime) }
    if queue != 0 { Lifetime.memberIsGone(queue) }
  }
}
