import MulticastHeader
import MulticastShims
import Synchronization

/// Whether a multicast has delegates, told to its `interest` function.
///
/// A change of the delegates and what is told of it are two steps, because the function runs under
/// no lock. One thread tells at a time. It looks at the delegates under the lock, before it tells
/// and again afterwards, until what it told last is so. A thread that finds another one telling
/// leaves it to that one. So the last word is true.
extension Policies {
  typealias Interest =
    @convention(c) (
      _ context: UnsafeMutableRawPointer?, _ target: multicast, _ wanted: Bool
    ) -> Void

  struct Telling {
    let interest: Interest?
    let context: UnsafeMutableRawPointer?
    let release: RegistrationDetails.Release?

    // Guarded by the stripe's lock.

    var multicast = Handle.none
    /// What was told last.
    var isWanted = false
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
    while let interest = telling.interest, isWanted != telling.isWanted {
      telling.isWanted = isWanted
      if entered == nil { entered = ThreadRegistry.enterIfNeeded() }
      telling.teller = entered?.record.identity ?? .none
      let (context, handle) = (telling.context, telling.multicast.rawValue)
      let wanted = telling.isWanted
      stripe.unlock()
      Lock.checkNoneIsHeld()
      interest(context, multicast(id: handle), wanted)
      stripe.lock()
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

  /// Whether there are delegates now. The stripe's lock is held.
  private var isWanted: Bool {
    if telling.isEnded { return false }
    return (Multicast(slotOf: telling.multicast)?.list?.live ?? 0) > 0
  }

  /// The multicast has ended. Its stripe's lock is held.
  ///
  /// - Returns: whether the caller has to call `end`. Otherwise the thread that is telling does it.
  func willEnd() -> Bool {
    telling.isEnded = true
    return begin()
  }

  /// Tells the end, and ends the policies. No lock is held.
  func end(_ handle: Handle) {
    let stripe = Stripe(of: handle.index)
    stripe.lock()
    tell(stripe)
  }

  /// After a change of the delegates. No lock is held.
  @inline(never) static func tell(_ multicast: Multicast) {
    // If these are the rules of a later occupant, the multicast has ended, which `end` tells.
    guard multicast.isGoverned, Policies(of: multicast).currentRules.hasInterest else { return }
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
