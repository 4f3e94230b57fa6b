import MulticastShims
import Synchronization

/// Which side of a multicast pays for its fences: removals, or invocations.
///
/// A multicast is *biased* to invocations: they make light fences, and each removal makes a heavy
/// one. Where removals follow each other closely, that is the wrong side. Such a multicast becomes
/// *fenced*: its invocations make a full fence for each delegate, and its removals no heavy fence.
/// When removals cease it is biased again. The word that invocations compare tells which it is, so
/// a biased invocation does not ask.
///
/// **From biased to fenced.** A removal stores the mode, makes a full fence, and reads the stamp
/// `unsettledSince`, all under the stripe's lock. An invocation may have read the old mode: it is a
/// biased one, whose hazards are visible only after a heavy fence. A fenced invocation says in the
/// target of its frame that it is one, before its full fence.
///
/// After a heavy fence that began later than the stamp, an invocation that may be biased has a
/// frame that does not say so, or it reads the mode after that fence, and sees it. So removals make
/// the heavy fence until one has begun since the switch, and until no frame of this multicast may
/// be a biased one. From then on all invocations are fenced. A removal retires the registration,
/// makes a full fence and looks at the hazards. An invocation sets its hazard, makes a full fence
/// and looks at the slot. At least one of them sees the other. The same holds for a list that is
/// replaced, and a frame that names it.
///
/// **From fenced to biased.** An invocation stores the mode under the stripe's lock, with release.
/// Biased invocations read it, with acquire. So they see every change of a writer that had
/// the lock before, and looks at the frames without a heavy fence. A writer that has the
/// lock later finds the mode, and makes the heavy fence. No invocation has to end before.
struct Bias: ~Copyable {
  /// Fenced: the stamp of the switch plus 1, as long as a biased invocation may be running; 0
  /// afterwards, and where membarrier is missing.
  ///
  /// The stripe's lock guards it. Everything below decides about speed alone; threads may lose
  /// counts of each other.
  var unsettledSince: UInt64
  /// Biased: when the last heavy fence ended, in units of 64 ns. Fenced: how many delegates were
  /// called since the last removal.
  let clock: Atomic<UInt32>
  /// Biased: how many heavy fences were made, one soon after the other.
  let count: Atomic<UInt16>
  /// Their average time, in units of 16 ns.
  let cost: Atomic<UInt16>

  /// After so many heavy fences a multicast is fenced.
  static var fencesBeforeChange: UInt16 { 12 }
  /// A heavy fence follows soon if the time before it is less than so many times its own.
  static var leisure: Int64 { 8 }
  /// The most that a heavy fence takes, in units of 16 ns. More is the time of other threads.
  static var highestCost: UInt64 { 2048 }
  /// So many calls with full fences are worth 16 ns of heavy fences, and so many are always made:
  /// if fewer are made between two removals, they take less time than heavy fences.
  static var callsPerCost: UInt32 { 8 }
  static var leastCalls: UInt32 { 2048 }
  /// The calls that a thread counts before it adds them to the multicast's count.
  static var share: UInt32 { 256 }
}

extension Multicast {
  // MARK: - Under the stripe's lock

  /// The word of the invokers without the handle.
  var invokerNumber: UInt64 {
    get {
      let number = fields.invoker.load(ordering: .relaxed) &- handle.rawValue
      #if arch(x86_64)
        return number
      #else
        if number != 0 { return number }
        // Pairs with the change of a first invoker, who looks at the lock afterwards. On x86 the
        // lock was taken by a full fence.
        Fence.full()
        return fields.invoker.load(ordering: .relaxed) &- handle.rawValue
      #endif
    }
    nonmutating set {
      let word = handle.rawValue &+ Self.completed(newValue)
      // Release: pairs with the acquire of an invocation that reads it.
      fields.invoker.store(word, ordering: .releasing)  // order: invokers
    }
  }

  /// With `open`, if nothing is special for an invocation, and no change depends on which threads
  /// have invoked it: several have, or one has and the multicast is observed.
  static func completed(_ number: UInt64) -> UInt64 {
    let isPlain = number & (fenced | watched | withPolicies) == 0
    let invoker = number & ~(special | open)
    let isOpen = isPlain && invoker >= (number & observed == 0 ? multipleInvokers : 1)
    return number & ~open | (isOpen ? open : 0)
  }

  /// The fence that a thread needs after a change, before it looks at the frames.
  func neededFence(_ thread: ThreadRecord?) -> Fence.Need {
    hasSingleInvoker(thread) ? .none : neededFenceOfSeveral(thread)
  }

  @inline(never)
  private func neededFenceOfSeveral(_ thread: ThreadRecord?) -> Fence.Need {
    if invokerNumber & Self.fenced == 0 { return .heavy }  //~ always_fenced
    //~ settled_too_early
    if fields.bias.unsettledSince != 0 && mayBeBiased(thread) { return .heavy }
    if fields.bias.clock.load(ordering: .relaxed) != 0 {
      fields.bias.clock.store(0, ordering: .relaxed)
    }
    return .full
  }

  /// Whether an invocation on another thread may be biased, although the multicast is fenced.
  private func mayBeBiased(_ thread: ThreadRecord?) -> Bool {
    if !Fence.Stamp(rawValue: fields.bias.unsettledSince &- 1).isFenced { return true }
    var isOwn = false
    for record in ThreadRegistry.all {
      let biased = record.firstFrame { _, target, _ in target == self.target && target.isBiased }
      if biased == nil { continue }
      if !(record == thread) { return true }
      isOwn = true
    }
    // Its own frames are visible to this thread, but not to another one.
    if !isOwn { fields.bias.unsettledSince = 0 }
    return false
  }

  // MARK: - With no lock held

  /// Whether a heavy fence is needed for what was changed before.
  func needsHeavyFence(_ thread: ThreadRecord?) -> Bool {
    stripe.lock()
    defer { stripe.unlock() }
    return !isCurrent || neededFence(thread) == .heavy
  }

  /// A heavy fence was made for a change of this multicast. If one follows the other, the multicast
  /// is fenced from now on.
  func didFence(from begin: UInt64, to end: UInt64) {
    if invokerNumber & Self.fenced != 0 { return }
    let cost = UInt16(truncatingIfNeeded: min((end &- begin) >> 4, Bias.highestCost))
    let idle = UInt32(truncatingIfNeeded: begin >> 6) &- fields.bias.clock.load(ordering: .relaxed)
    fields.bias.clock.store(UInt32(truncatingIfNeeded: end >> 6), ordering: .relaxed)
    // Signed: another thread's heavy fence may have ended after this fence began.
    let isSoon = Int64(Int32(bitPattern: idle)) < Int64(cost) &* Bias.leisure / 4
    let count = isSoon ? fields.bias.count.load(ordering: .relaxed) &+ 1 : 0
    let known = count > 1 ? fields.bias.cost.load(ordering: .relaxed) : cost
    fields.bias.count.store(count, ordering: .relaxed)
    fields.bias.cost.store((known &* 3 &+ cost) / 4, ordering: .relaxed)
    if count >= Bias.fencesBeforeChange { beginFencing() }
  }

  private func beginFencing() {
    stripe.lock()
    defer { stripe.unlock() }
    guard isCurrent, handle.isOfMulticast, Fence.isAsymmetric,
      invokerNumber & ~Self.special != 0 && invokerNumber & Self.fenced == 0
    else { return }
    invokerNumber |= Self.fenced
    Fence.full()  // before the stamp: a heavy fence with a higher number begins after the change
    fields.bias.unsettledSince = Fence.Stamp.now.rawValue &+ 1
    fields.bias.clock.store(0, ordering: .relaxed)
    checkInvariants()
  }

  /// Delegates were called with full fences. When these have cost more than a heavy fence, the
  /// multicast is biased from now on.
  func didCallFenced(_ called: Int64, _ thread: ThreadRecord) {
    // The frame and its withdrawal are worth two.
    let share = thread.storage.pointee.fencedCalls &+ UInt32(truncatingIfNeeded: called) &+ 2
    thread.storage.pointee.fencedCalls = share < Bias.share ? share : 0
    // A watched invocation makes full fences in any case. Its calls are not counted.
    if share < Bias.share || invokerNumber & Self.watched != 0 { return }
    let calls = fields.bias.clock.wrappingAdd(share, ordering: .relaxed).newValue
    let cost = UInt32(fields.bias.cost.load(ordering: .relaxed))
    if calls > max(cost &* Bias.callsPerCost, Bias.leastCalls) { endFencing() }
  }

  private func endFencing() {
    stripe.lock()
    defer { stripe.unlock() }
    guard isCurrent, Fence.isAsymmetric, invokerNumber & Self.fenced != 0 else { return }
    invokerNumber &= ~Self.fenced
    fields.bias.count.store(0, ordering: .relaxed)
    checkInvariants()
  }
}
