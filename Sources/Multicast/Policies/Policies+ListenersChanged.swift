import MulticastHeader
import MulticastShims
import Synchronization

/// Tells the `listeners_changed` function of a multicast, or the transport of its broadcaster,
/// whether the multicast has delegates.
///
/// A change of the delegates and its notification are two steps, because the function runs under no
/// lock. One thread notifies at a time. It looks at the delegates under the lock, before and after
/// each notification, and repeats this until the last notification matches the state. A thread that
/// changes the delegates while another thread is notifying leaves the notification to that thread.
/// So the last notification is always correct.
extension Policies {
  // The arguments are the context, the target, and whether the target has delegates.
  typealias ListenersChanged = @convention(c) (UnsafeMutableRawPointer?, multicast, Bool) -> Void
  /// The corresponding function of a transport. A negative result means that the transport refused
  /// the notification.
  typealias Subscription = @convention(c) (UnsafeMutableRawPointer?, multicast, Bool) -> Int32

  struct Notifier {
    enum Function {
      /// The function of a caller.
      case listenersChanged(ListenersChanged)
      /// The function of a transport, with the variable for the transport's handle, which is none
      /// once the transport is detached.
      case subscription(Subscription, UnsafeMutablePointer<Atomic<Handle>>)
    }

    let function: Function?
    let context: UnsafeMutableRawPointer?
    let release: RegistrationDetails.Release?

    // Guarded by the stripe's lock.

    var multicast = Handle.none
    /// The last notification. If it said that there are delegates: the handle of the transport or,
    /// for a caller's `listeners_changed` function, the handle of the multicast. If it said that
    /// there are none: none.
    var last = Handle.none
    /// Whether a thread is notifying, and the identity of that thread. The identity is none if the
    /// thread has no record for lack of memory.
    var isUnderWay = false
    var thread = ThreadIdentity.none
    /// Whether the multicast does not exist any more. If so, the thread that notifies last ends the
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
  /// - Returns: false if a thread, perhaps this one, is the notifier already. That thread then
  ///   notifies of the change.
  private func begin() -> Bool {
    if notifier.isUnderWay { return false }
    notifier.isUnderWay = true
    notifier.thread = ThreadRecord.current?.identity ?? .none
    return true
  }

  /// Notifies of the state if it has changed. Called after `begin` with the stripe's lock held;
  /// releases the lock.
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
      // Only the last refusal counts, since another transport may accept what an earlier one
      // refused.
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

  /// The value for `last` that matches the present state: none if there are no delegates. The
  /// stripe's lock is held.
  private var wanted: Handle {
    let list = Multicast(slotOf: notifier.multicast)?.list
    if notifier.isEnded || list?.live ?? 0 == 0 { return .none }
    guard case .subscription(_, let transport) = notifier.function else {
      return notifier.multicast
    }
    // Acquire: pairs with the release in `Broadcaster.attach`.
    return transport.pointee.load(ordering: .acquiring)  // order: default
  }

  /// Called when the multicast has ended. Its stripe's lock is held.
  ///
  /// - Parameter isKept: Whether the policies are kept for the next multicast in the slot.
  /// - Returns: whether the caller has to call `end`. Otherwise the notifying thread does.
  func willEnd(isKept: Bool) -> Bool {
    notifier.isEnded = !isKept
    return begin()
  }

  /// Notifies that the multicast has ended, and ends the policies if they are not kept. No lock is
  /// held.
  func end(_ handle: Handle) {
    let stripe = Stripe(of: handle.index)
    stripe.lock()
    notify(stripe)
  }

  /// Called after a change of the delegates. No lock is held.
  static func notify(_ multicast: Multicast) {
    // If these rules belong to a later multicast in the slot, this multicast has ended, and `end`
    // notifies of that.
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

  /// Called in the child of a fork: the parent's threads, which may have been notifying, do not
  /// exist here.
  static func notifyAllInChild() {
    let own = ThreadRecord.current?.identity ?? .none
    pool.forEach { slot, _ in
      let policies = Policies(slot)
      // If this thread itself is notifying, it goes on with that.
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
