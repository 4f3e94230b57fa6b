import MulticastHeader
import MulticastShims
import Synchronization

/// Notifies the `listeners_changed` function of a multicast, or the transport of its broadcaster,
/// when the multicast receives its first delegate or loses its last.
///
/// One thread notifies at a time. A thread that changes the delegates while another thread is
/// notifying leaves the notification to that thread, which continues until the last notification
/// matches the state.
extension Policies {
  // The arguments are the context, the target, and whether the target has delegates.
  typealias ListenersChanged = @convention(c) (UnsafeMutableRawPointer?, multicast, Bool) -> Void
  /// The corresponding function of a transport. Returns a negative number to refuse the
  /// notification.
  typealias Subscription = @convention(c) (UnsafeMutableRawPointer?, multicast, Bool) -> Int32

  struct Notifier {
    enum Function {
      case listenersChanged(ListenersChanged)
      /// A transport's function, and the variable that contains the transport's handle, or `.none`
      /// after the transport has been detached.
      case subscription(Subscription, UnsafeMutablePointer<Atomic<Handle>>)
    }

    let function: Function?
    let context: UnsafeMutableRawPointer?
    let release: RegistrationDetails.Release?

    // Guarded by the stripe's lock.

    var multicast = Handle.none
    /// `.none` if the last notification reported that there are no delegates. If it reported that
    /// there are delegates, this is the handle of the notified transport, or of the multicast if
    /// the function is a caller's `listeners_changed` function.
    var last = Handle.none
    /// Whether a thread is notifying, and that thread's identity, which is `.none` if there was no
    /// memory for the thread's record.
    var isUnderWay = false
    var thread = ThreadIdentity.none
    /// Whether the multicast has ended, in which case the notifying thread ends the policies after
    /// its last notification.
    var isEnded = false
  }

  private var notifier: Notifier {
    unsafeAddress { UnsafePointer(address) }
    nonmutating unsafeMutableAddress { address }
  }

  private var address: UnsafeMutablePointer<Notifier> {
    withUnsafeMutablePointer(to: &storage.pointee.notifier) { $0 }
  }

  /// Makes this thread the notifying thread. The caller holds the stripe's lock.
  ///
  /// - Returns: false if a thread, perhaps this thread, is already notifying.
  private func begin() -> Bool {
    if notifier.isUnderWay { return false }
    notifier.isUnderWay = true
    notifier.thread = ThreadRecord.current?.identity ?? .none
    return true
  }

  /// Sends all notifications that are due. The caller has called `begin` and holds the stripe's
  /// lock, which this function releases.
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
      // Remember only the last refusal, because another transport may accept a notification that an
      // earlier transport has refused.
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

  /// The value of `last` that matches the current state, or `.none` if there are no delegates. The
  /// caller holds the stripe's lock.
  private var wanted: Handle {
    let list = Multicast(slotOf: notifier.multicast)?.list
    if notifier.isEnded || list?.live ?? 0 == 0 { return .none }
    guard case .subscription(_, let transport) = notifier.function else {
      return notifier.multicast
    }
    // Acquire: pairs with the release in `Broadcaster.attach`.
    return transport.pointee.load(ordering: .acquiring)  // order: default
  }

  /// Called when the multicast has ended. The caller holds the stripe's lock.
  ///
  /// - Parameter isKept: Whether the policies are kept for the next multicast in the slot.
  /// - Returns: true if the caller has to call `end`, or false if a thread is already notifying and
  ///   will end the policies.
  func willEnd(isKept: Bool) -> Bool {
    notifier.isEnded = !isKept
    return begin()
  }

  /// Reports the end of the multicast, and ends the policies unless they are kept. No lock is held.
  func end(_ handle: Handle) {
    let stripe = Stripe(of: handle.index)
    stripe.lock()
    notify(stripe)
  }

  /// Called after a change to the delegates. No lock is held.
  static func notify(_ multicast: Multicast) {
    // The rules may belong to a later multicast in the slot. If they do, this multicast has ended,
    // and `end` sends the notification.
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

  /// Called in the child of a fork, in which threads that were notifying in the parent do not
  /// exist.
  static func notifyAllInChild() {
    let own = ThreadRecord.current?.identity ?? .none
    pool.forEach { slot, _ in
      let policies = Policies(slot)
      // If this thread itself is notifying, it will continue to do so.
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
