import CMulticast
import MulticastShims

/// What few registrations have: kept apart so that the many stay small.
struct Extras {
  typealias Release = @convention(c) (_ context: UnsafeMutableRawPointer?) -> Void

  typealias Lock =
    @convention(c) (_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer?
  typealias Unlock = @convention(c) (_ strong: UnsafeMutableRawPointer?) -> Void

  var release: Release?
  var context: UnsafeMutableRawPointer?
  var events: UInt64
  var lock: Lock?
  var unlock: Unlock?
  var membership: Membership
  var priority: Int32
  /// The next of a chain whose releases are due.
  var next: UnsafeMutablePointer<Extras>?

  private static let alignment = 16

  static func allocate(
    _ options: Options, context: UnsafeMutableRawPointer?
  ) -> UnsafeMutablePointer<Extras>? {
    let size = MemoryLayout<Extras>.size
    guard let block = Allocator.allocate(size: size, alignment: alignment) else { return nil }
    let extras = block.bindMemory(to: Extras.self, capacity: 1)
    extras.initialize(
      to: Extras(
        release: options.release, context: context, events: options.events,
        lock: options.lock, unlock: options.unlock,
        membership: Membership(lifetime: options.lifetime), priority: options.priority,
        next: nil))
    return extras
  }

  static func deallocate(_ extras: UnsafeMutablePointer<Extras>) {
    Allocator.deallocate(extras, size: MemoryLayout<Extras>.size, alignment: alignment)
  }

  /// Runs the releases of a chain and frees it. No lock is held, and nothing of the chain is
  /// touched once its release has begun: that may call anything.
  static func release(_ chain: UnsafeMutablePointer<Extras>?) {
    var next = chain
    while let extras = next {
      next = extras.pointee.next
      let (release, context) = (extras.pointee.release, extras.pointee.context)
      let lifetime = extras.pointee.membership.lifetime
      deallocate(extras)
      if let release {
        let depth = shims_get_release_depth()
        shims_set_release_depth(depth &+ 1)
        release(context)
        shims_set_release_depth(depth)
      }
      if lifetime != 0 { Lifetime.memberIsGone(lifetime) }
    }
  }
}
