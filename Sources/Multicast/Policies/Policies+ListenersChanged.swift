import MulticastHeader
import MulticastShims
import Synchronization

/// Notifies the `listeners_changed` function of a multicast, or the transport of its broadcaster,
/// whether the multicast has delegates.
///
/// A change of the delegates and the notification are two steps, because the function runs under no
/// lock. One thread notifies at a time. It looks at the delegates under the lock, before each
/// notification and afterwards, and repeats until the last notification matches the state. If
/// another thread is already notifying, that thread picks up this change. So the last word is true.
extension Policies {
  // The arguments are the context, the target, and whether the target has delegates.
  typealias ListenersChanged = @convention(c) (UnsafeMutableRawPointer?, multicast, Bool) -> Void
  /// The same function of a transport. Below zero: it was not notified.
  typealias Subscription = @convention(c) (UnsafeMutableRawPointer?, multicast, Bool) -> Int32

  struct Notifier {
    enum Function {
      /// A caller's.
      case listenersChanged(ListenersChanged)
      /// A transport's, with the place of its handle, which is none if it is detached.
      case subscription(Subscription, UnsafeMutablePointer<Atomic<Handle>>)
    }

    let function: Function?
    let context: UnsafeMutableRawPointer?
    let release: RegistrationDetails.Release?

    // Guarded by the stripe's lock.

    var multicast = Handle.none
    /// The last notification. There are delegates: the handle of the transport, or, for the
    /// `listeners_changed` function of a caller, the handle of the multicast. There are none: none.
    var last = Handle.none
    /// Whether a thread is notifying, and its identity; none: it has no record, for lack of memory.
    var isUnderWay = false
    var thread = ThreadIdentity.none
    /// Whether the multicast does not exist any more. Then the thread that notifies last ends the
    /// policies.
    var isEnded = false
  }

  private var notifier: Notifier {
    unsafeAddress { UnsafePointer(address) }
    nonmutating unsafeMutableAddress { address }
  }

  private var address: UnsafeMutablePointer<Notifier> {
    withUnsafeMutablePointer(to: &storage.pointee.notifier) { $0 }
  }

  /// Makes this thread the notifier. The stripe's lock is held.
  ///
  /// - Returns: false if another thread, or this thread already, is the notifier, and picks up the
  ///   change.
  private func begin() -> Bool {
    if notifier.isUnderWay { return false }
    notifier.isUnderWay = true
    notifier.thread = ThreadRecord.current?.identity ?? .none
    return true
  }

  /// Notifies, if the state has changed, after `begin`. The stripe's lock is held at the beginning,
  /// and released.
  private func notify(_ stripe: Stripe) {
    var entered: (record: ThreadRecord, hasEntered: Bool)? = nil
    var refusing: Handle? = nil
    while let function = notifier.function {
      let (wanted, last) = (self.wanted, notifier.last)
      if wanted == last || wanted == refusing { break }
      notifier.last = wanted
      if entered == nil { entered = ThreadRegistry.enterIfNeeded() }
      notifier.thread = entered?.record.identity ?? .none
      let context = notifier.context
      stripe.unlock()
      Lock.checkNoneIsHeld()
      let target = multicast(id: (wanted.isNone ? last : wanted).rawValue)
      var isRefused = false
      switch function {
      case .listenersChanged(let function): function(context, target, !wanted.isNone)
      case .subscription(let function, _):
        isRefused = function(context, target, !wanted.isNone) < 0
      }
      stripe.lock()
      if isRefused { notifier.last = last }
      // Of what was refused before, only the last counts: another transport may take it.
      refusing = isRefused ? wanted : nil  //~ refusal_kept
    }
    notifier.isUnderWay = false
    let (isEnded, release, context) = (notifier.isEnded, notifier.release, notifier.context)
    stripe.unlock()
    if isEnded {
      giveBack()
      if let release { PendingCleanup.run(release, context) }
    }
    if let entered { ThreadRegistry.leaveIfEnding(entered.record, entered.hasEntered) }
  }

  /// To what there are delegates now; none if there are none. The stripe's lock is held.
  private var wanted: Handle {
    let list = Multicast(slotOf: notifier.multicast)?.list
    if notifier.isEnded || list?.live ?? 0 == 0 { return .none }
    guard case .subscription(_, let transport) = notifier.function else {
      return notifier.multicast
    }
    // Acquire: pairs with `Broadcaster.attach`.
    return transport.pointee.load(ordering: .acquiring)  // order: default
  }

  /// The multicast has ended. Its stripe's lock is held.
  ///
  /// - Parameter isKept: Whether the policies stay, for the next multicast in the slot.
  /// - Returns: whether the caller has to call `end`. Otherwise the notifying thread does.
  func willEnd(isKept: Bool) -> Bool {
    notifier.isEnded = !isKept
    return begin()
  }

  /// Notifies of the end, and ends the policies if they are not kept. No lock is held.
  func end(_ handle: Handle) {
    let stripe = Stripe(of: handle.index)
    stripe.lock()
    notify(stripe)
  }

  /// After a change of the delegates. No lock is held.
  static func notify(_ multicast: Multicast) {
    // If these are the rules of a later occupant, the multicast has ended, and `end` notifies of
    // that.
    guard
      multicast.isObserved
        || multicast.hasPolicies && Policies(of: multicast).currentRules.notifiesListenersChanged
    else { return }
    let stripe = multicast.stripe
    stripe.lock()
    guard multicast.isCurrent, multicast.policies.begin() else {
      return stripe.unlock()
    }
    multicast.policies.notify(stripe)
  }

  /// In the child of a fork: the threads of the parent do not notify any more.
  static func notifyAllInChild() {
    let own = ThreadRecord.current?.identity ?? .none
    pool.forEach { slot, _ in
      let policies = Policies(slot)
      // This thread may be notifying, too: then it goes on.
      let isOwn = policies.notifier.isUnderWay && !own.isNone && policies.notifier.thread == own
      let id = policies.storage.pointee.header.id.load(ordering: .relaxed)
      if isOwn || !(id.kind == .policies) { return }
      let stripe = Stripe(of: policies.notifier.multicast.index)
      stripe.lock()
      policies.notifier.isUnderWay = true
      policies.notify(stripe)
    }
  }
}
