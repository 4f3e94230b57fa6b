import MulticastHeader
import MulticastShims
import Synchronization

/// Whether a multicast has delegates, told to its `interest` function; or to the transport of the
/// broadcaster of whose names it is one.
///
/// A change of the delegates and the notification are two steps, because the function runs under no
/// lock. One thread notifies at a time. It looks at the delegates under the lock, before each
/// notification and afterwards, and repeats until the last notification matches the state. If
/// another thread is already notifying, that thread picks up this change. So the last word is true.
extension Policies {
  typealias Interest =
    @convention(c) (
      _ context: UnsafeMutableRawPointer?, _ target: multicast, _ wanted: Bool
    ) -> Void

  /// The same function of a transport. Below zero: it was not told.
  typealias Subscription =
    @convention(c) (
      _ context: UnsafeMutableRawPointer?, _ target: multicast, _ wanted: Bool
    ) -> Int32

  struct Telling {
    enum Function {
      /// A caller's.
      case interest(Interest)
      /// A transport's, with the place of its handle, which is none if it is detached.
      case subscription(Subscription, UnsafeMutablePointer<Atomic<Handle>>)
    }

    let function: Function?
    let context: UnsafeMutableRawPointer?
    let release: RegistrationDetails.Release?

    // Guarded by the stripe's lock.

    var multicast = Handle.none
    /// To what it was told last that there are delegates: the handle of a transport, or, for the
    /// `interest` function of a caller, that of the multicast. None: that there are none.
    var told = Handle.none
    /// Whether a thread is telling, and its identity; none: it has no record, for lack of memory.
    var isUnderWay = false
    var teller = ThreadIdentity.none
    /// Whether the multicast does not exist any more. Then the thread that tells last ends the
    /// policies.
    var isEnded = false
  }

  private var telling: Telling {
    unsafeAddress { UnsafePointer(address) }
    nonmutating unsafeMutableAddress { address }
  }

  private var address: UnsafeMutablePointer<Telling> {
    withUnsafeMutablePointer(to: &storage.pointee.telling) { $0 }
  }

  /// Makes this thread the one that tells. The stripe's lock is held.
  ///
  /// - Returns: false if another one is, or this one already. That one then tells.
  private func begin() -> Bool {
    if telling.isUnderWay { return false }
    telling.isUnderWay = true
    telling.teller = ThreadRecord.current?.identity ?? .none
    return true
  }

  /// Tells, if there is something to tell, after `begin`. The stripe's lock is held at the
  /// beginning, and released.
  private func tell(_ stripe: Stripe) {
    var entered: (record: ThreadRecord, hasEntered: Bool)? = nil
    var refusing: Handle? = nil
    while let function = telling.function {
      let (wanted, told) = (self.wanted, telling.told)
      if wanted == told { break }
      if wanted == refusing {
        if !wanted.isNone { willTellNextAdd() }  //~ add_after_refusal_not_told
        break
      }
      telling.told = wanted
      if entered == nil { entered = ThreadRegistry.enterIfNeeded() }
      telling.teller = entered?.record.identity ?? .none
      let context = telling.context
      stripe.unlock()
      Lock.checkNoneIsHeld()
      let target = multicast(id: (wanted.isNone ? told : wanted).rawValue)
      var isRefused = false
      switch function {
      case .interest(let tell): tell(context, target, !wanted.isNone)
      case .subscription(let tell, _): isRefused = tell(context, target, !wanted.isNone) < 0
      }
      stripe.lock()
      if isRefused { telling.told = told }
      // Of what was refused before, only the last counts: another transport may take it.
      refusing = isRefused ? wanted : nil  //~ refusal_kept
    }
    telling.isUnderWay = false
    let (isEnded, release, context) = (telling.isEnded, telling.release, telling.context)
    stripe.unlock()
    if isEnded {
      giveBack()
      if let release { Reclaimed.run(release, context) }
    }
    if let entered { ThreadRegistry.leaveIfEnding(entered.record, entered.hasEntered) }
  }

  /// To what there are delegates now; none if there are none. The stripe's lock is held.
  private var wanted: Handle {
    if telling.isEnded { return .none }
    guard let list else { return .none }
    if list.live == 0 {
      willTellNextAdd()  //~ observed_add_not_told
      return .none
    }
    guard case .subscription(_, let transport) = telling.function else { return telling.multicast }
    // Acquire: pairs with `Broadcaster.attach`.
    return transport.pointee.load(ordering: .acquiring)  // order: default
  }

  private var list: InvocationList? { Multicast(slotOf: telling.multicast)?.list }

  /// The next add is to tell: so it is not to be made in the fast way.
  private func willTellNextAdd() { list?.header.lastPriority = .min }

  /// The multicast has ended. Its stripe's lock is held.
  ///
  /// - Parameter isKept: Whether the policies stay, for the next multicast in the slot.
  /// - Returns: whether the caller has to call `end`. Otherwise the thread that is telling does it.
  func willEnd(isKept: Bool) -> Bool {
    telling.isEnded = !isKept
    return begin()
  }

  /// Tells the end, and ends the policies if they are not kept. No lock is held.
  func end(_ handle: Handle) {
    let stripe = Stripe(of: handle.index)
    stripe.lock()
    tell(stripe)
  }

  /// After a change of the delegates. No lock is held.
  static func tell(_ multicast: Multicast) {
    // If these are the rules of a later occupant, the multicast has ended, which `end` tells.
    guard
      multicast.isObserved
        || multicast.isGoverned && Policies(of: multicast).currentRules.hasInterest
    else { return }
    let stripe = multicast.stripe
    stripe.lock()
    guard multicast.isCurrent, multicast.policies.begin() else {
      return stripe.unlock()
    }
    multicast.policies.tell(stripe)
  }

  /// In the child of a fork: the threads of the parent do not tell any more.
  static func tellAllInChild() {
    let own = ThreadRecord.current?.identity ?? .none
    pool.forEach { slot, _ in
      let policies = Policies(slot)
      // This thread may be telling, too: then it goes on.
      let isOwn = policies.telling.isUnderWay && !own.isNone && policies.telling.teller == own
      let id = policies.storage.pointee.header.id.load(ordering: .relaxed)
      if isOwn || !(id.kind == .policies) { return }
      let stripe = Stripe(of: policies.telling.multicast.index)
      stripe.lock()
      policies.telling.isUnderWay = true
      policies.tell(stripe)
    }
  }
}
