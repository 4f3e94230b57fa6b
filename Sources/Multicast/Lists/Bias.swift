import MulticastShims
import Synchronization

/// Decides which side of a multicast pays for its fences: the removals or the invocations.
///
/// A multicast is *biased* to its invocations at first: they make light fences, and each removal
/// makes a heavy fence. If removals follow each other closely, this costs more than it saves, and
/// the multicast becomes *fenced*: its invocations make a full fence for each delegate, and its
/// removals make no heavy fence. When the removals stop, the multicast becomes biased again. The
/// mode is part of the invoker word, which each invocation compares anyway, so a biased invocation
/// pays nothing for the choice.
///
/// **From biased to fenced.** Under the stripe's lock, a removal stores the new mode, makes a full
/// fence, and stores the current stamp in `unsettledSince`. An invocation may have read the old
/// mode. It is then a biased invocation, whose hazards are visible to writers only after a heavy
/// fence. A fenced invocation tags the target of its frame as fenced before it makes its full
/// fence, so writers can tell the two apart.
///
/// Consider a heavy fence that began after the stamp. Once it is over, an invocation either has a
/// visible frame without the tag and may be biased, or it reads the mode after the fence and sees
/// that the multicast is fenced. So removals keep making heavy fences until one has begun since the
/// switch and no frame of this multicast may belong to a biased invocation. From then on all
/// invocations are fenced: a removal retires the registration, makes a full fence and looks at the
/// hazards, while an invocation sets its hazard, makes a full fence and looks at the slot. At least
/// one of them sees the other. The same argument holds for a replaced list and a frame that names
/// it.
///
/// **From fenced to biased.** An invocation stores the mode under the stripe's lock, with release,
/// and biased invocations read it with acquire. So a biased invocation sees every change of a
/// writer that held the lock before the switch, and that writer needs no heavy fence before it
/// looks at the frames. A writer that takes the lock after the switch finds the new mode and makes
/// the heavy fence. The switch does not have to wait for any invocation.
struct Bias: ~Copyable {
  /// If the multicast is fenced: the stamp of the switch plus 1 while a biased invocation may still
  /// be running, and 0 afterwards. Always 0 without membarrier.
  ///
  /// Guarded by the stripe's lock. The fields below affect only speed, so updates that threads make
  /// at the same time may be lost.
  var unsettledSince: UInt64
  /// If biased: when the last heavy fence ended, in units of 64 ns. If fenced: how many delegates
  /// were called since the last removal.
  let clock: Atomic<UInt32>
  /// If biased: how many heavy fences have followed each other closely.
  let count: Atomic<UInt16>
  /// The average time that these fences took, in units of 16 ns.
  let cost: Atomic<UInt16>

  /// The number of heavy fences in close succession after which a multicast becomes fenced.
  static var fencesBeforeChange: UInt16 { 12 }
  /// A heavy fence follows closely if the time since the last one is shorter than its own duration
  /// times this factor.
  static var leisure: Int64 { 8 }
  /// The longest duration that is attributed to a heavy fence, in units of 16 ns. In a longer one,
  /// the processor was running other threads.
  static var highestCost: UInt64 { 2048 }
  /// A multicast becomes biased again after this many fenced calls for each 16 ns that a heavy
  /// fence takes, but not before `leastCalls`. If fewer calls are made between two removals, their
  /// full fences take less time than heavy fences would.
  static var callsPerCost: UInt32 { 8 }
  static var leastCalls: UInt32 { 2048 }
  /// A thread counts this many calls before it adds them to the multicast's count.
  static var share: UInt32 { 256 }
}

extension Multicast {
  // MARK: - Under the stripe's lock

  /// The invoker word minus the handle: the invoker's number and the special bits.
  var invokerNumber: UInt64 {
    get {
      let number = fields.invoker.load(ordering: .relaxed) &- handle.rawValue
      #if arch(x86_64)
        return number
      #else
        if number != 0 { return number }
        // Pairs with the compare and swap of a first invoker, which looks at the lock afterwards.
        // On x86, taking the lock was a full fence.
        Fence.full()
        return fields.invoker.load(ordering: .relaxed) &- handle.rawValue
      #endif
    }
    nonmutating set {
      let word = handle.rawValue &+ Self.completed(newValue)
      // Release: pairs with the acquire load of an invocation.
      fields.invoker.store(word, ordering: .releasing)  // order: invokers
    }
  }

  /// Returns the number with the `open` bits set or cleared. A word is open if nothing about its
  /// invocations is special and no change depends on which threads have invoked the multicast:
  /// either several threads have, or one has and the multicast is observed.
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
    // This thread sees its own frames, but another thread may not see them.
    if !isOwn { fields.bias.unsettledSince = 0 }
    return false
  }

  // MARK: - With no lock held

  /// Whether earlier changes of this multicast still need a heavy fence.
  func needsHeavyFence(_ thread: ThreadRecord?) -> Bool {
    stripe.lock()
    defer { stripe.unlock() }
    return !isCurrent || neededFence(thread) == .heavy
  }

  /// Called after a heavy fence for a change of this multicast. If such fences follow each other
  /// closely, the multicast becomes fenced.
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

  /// Called after a fenced invocation. When the full fences have cost more than a heavy fence, the
  /// multicast becomes biased.
  func didCallFenced(_ called: Int64, _ thread: ThreadRecord) {
    // Publishing and withdrawing the frame cost about as much as two calls.
    let share = thread.storage.pointee.fencedCalls &+ UInt32(truncatingIfNeeded: called) &+ 2
    thread.storage.pointee.fencedCalls = share < Bias.share ? share : 0
    // A watched invocation makes full fences in either mode, so its calls do not count.
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
