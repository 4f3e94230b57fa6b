import MulticastHeader
import MulticastShims
import Synchronization

/// How a multicast is created: a caller's `multicast_create_options`, checked.
struct CreateOptions {
  let given: multicast_create_options
  let rules: Policies.Rules

  init(_ given: UnsafePointer<multicast_create_options>) throws(Status) {
    guard StructSize.isValid(given, smallest: StructSize.createOptions) else {
      throw .invalidArgument
    }
    let options = given.pointee
    guard options.flags & ~MULTICAST_VISIT_ONLY == 0,
      let reentry = Policies.Rules.Reentry(rawValue: options.reentry),
      (options.lock_context == nil) == (options.unlock_context == nil),
      options.replay == 0
    else { throw .invalidArgument }
    self.given = options
    rules = Policies.Rules(
      reentry, isVisitOnly: options.flags & MULTICAST_VISIT_ONLY != 0,
      hasInterest: options.interest != nil)
  }

  /// Whether it is as if there were no options.
  var isPlain: Bool {
    rules.word == 0 && given.label == nil && given.lock_context == nil
      && given.release_context == nil && given.interest == nil && given.release == nil
  }
}

extension Multicast {
  /// - Parameter given: nil for the defaults.
  /// - Returns: the handle of an empty multicast.
  static func create(
    with given: UnsafePointer<multicast_create_options>?
  ) throws(Status) -> Handle {
    guard let given else { return try create() }
    let options = try CreateOptions(given)
    if options.isPlain { return try create() }
    Policies.start()
    let made = try Policies.pool.create(.policies) {
      (storage: UnsafeMutablePointer<Policies.Storage>, _) in
      Policies(storage).write(options)
    }
    do throws(Status) {
      return try create(.governed) { storage, handle in
        initialize(storage, handle)
        Policies(slot: made.index).storage.pointee.telling.multicast = handle
        // Release: pairs with the acquire in `Policies.init(of:)`.
        storage.pointee.header.owner.store(made.index, ordering: .releasing)  // order: policies
      }
    } catch {
      Policies(slot: made.index).giveBack()
      throw error
    }
  }
}

extension Policies {
  /// Release: pairs with the acquire of a thread that still reads them for the last occupant. It
  /// finds then that this occupant has ended.
  fileprivate func write(_ options: CreateOptions) {
    let given = options.given
    storage.pointee.rules.store(options.rules.word, ordering: .releasing)  // order: rules
    storage.pointee.lockContext.store(
      unsafeBitCast(given.lock_context, to: UInt.self), ordering: .releasing)  // order: rules
    storage.pointee.unlockContext.store(
      unsafeBitCast(given.unlock_context, to: UInt.self), ordering: .releasing)  // order: rules
    storage.pointee.releaseContext = given.release_context
    storage.pointee.telling = Telling(
      interest: given.interest, context: given.context, release: given.release)
    shims_copy_label(&storage.pointee.label, given.label)
  }

  /// Ends their use. The handle of the multicast has ended, or it was never made.
  func giveBack() {
    let id = storage.pointee.header.id.load(ordering: .relaxed)
    storage.pointee.header.id.store(id.changed(to: .vacant), ordering: .relaxed)
    Self.pool.reclaim(id.index)
  }
}
