import MulticastShims
import Synchronization

/// Decides which side pays for the fences of a multicast: the removals or the invocations.
///
/// A new multicast is *biased* to its invocations: they execute light fences, and each removal
/// executes a heavy fence. If removals closely follow each other, their heavy fences cost more than
/// light fences save. The multicast then becomes *fenced*: its invocations execute a full fence for
/// each delegate, and its removals execute no heavy fence. When the removals stop, the multicast
/// becomes biased again. The mode is part of the invoker word, which each invocation compares
/// anyway, so the choice costs biased invocations nothing.
///
/// **From biased to fenced.** Under the stripe's lock, a removal stores the new mode, executes a
/// full fence, and stores the current stamp in `unsettledSince`. Invocations that have read the old
/// mode are still biased: until a writer has executed a heavy fence, it may not see their hazards.
/// A fenced invocation tags its frame's target before it executes its full fence, so writers can
/// tell fenced invocations from biased ones.
///
/// After the switch, removals still execute heavy fences. Once a heavy fence that began after the
/// stamp was read has completed, a removal checks the frames. For each invocation, one of these
/// statements is true:
///
/// - Its frame is visible. If the frame has no tag, the invocation may be biased.
/// - Its frame is not visible yet. The invocation then reads the mode after the completed heavy
///   fence, so it sees that the multicast is fenced.
///
/// So if no visible frame of this multicast lacks the tag, all invocations are fenced from then on,
/// and removals need no heavy fence. A removal retires the registration, executes a full fence and
/// checks the hazards. An invocation sets its hazard, executes a full fence and checks the slot. At
/// least one of the two sees the other's store, so a full fence on each side is enough. The same
/// argument holds for a replaced list and a frame that names it.
///
/// **From fenced to biased.** A fenced invocation stores the new mode under the stripe's lock, with
/// release, and invocations read the mode with acquire. There are two kinds of writers:
/// - A writer that held the lock before the switch needs no heavy fence before it checks the
///   frames, because every biased invocation sees its changes.
/// - A writer that takes the lock after the switch finds the new mode, and executes a heavy fence.
/// So the switch does not have to wait for any invocation.
struct Bias: ~Copyable {
  /// In a fenced multicast, this is the stamp of the switch from biased to fenced, plus 1, while a
  /// biased invocation may still be running. Otherwise it is 0. Without membarrier, it is always 0.
  ///
  /// The stripe's lock guards this field. The other fields affect only speed, so several threads
  /// may update them at the same time, and updates may be lost.
  var unsettledSince: UInt64
  /// In a biased multicast, this is the time at which the last heavy fence ended, in units of 64
  /// ns. In a fenced multicast, it is the number of delegates called since the last removal.
  let clock: Atomic<UInt32>
  /// In a biased multicast, this is the number of heavy fences in close succession.
  let count: Atomic<UInt16>
  /// The average duration of the heavy fences that `count` counts, in units of 16 ns.
  let cost: Atomic<UInt16>

  /// A multicast becomes fenced after this many heavy fences in close succession.
  static var fencesBeforeChange: UInt16 { 12 }
  /// Two heavy fences are in close succession if the time between them is less than this many times
  /// the duration of the second fence.
  static var leisure: Int64 { 8 }
  /// The longest time that a heavy fence is assumed to take, in units of 16 ns. A fence that seems
  /// to have taken longer was interrupted by other threads.
  static var highestCost: UInt64 { 2048 }
  /// A fenced multicast becomes biased again after this many fenced calls for every 16 ns that a
  /// heavy fence takes, but not before `leastCalls` calls. If there are fewer calls between two
  /// removals, the full fences of these calls cost less than a removal's heavy fence would.
  static var callsPerCost: UInt32 { 8 }
  static var leastCalls: UInt32 { 2048 }
  /// A thread counts this many calls before it adds them to the multicast's count.
  static var share: UInt32 { 256 }
}

extension Multicast {
  // MARK: - Under the stripe's lock

  /// The invoker word minus the handle, that is, the invoker's number and the special bits.
  var invokerNumber: UInt64 {
    get {
      let number = fields.invoker.load(ordering: .relaxed) &- handle.rawValue
      #if arch(x86_64)
        return number
      #else
        if number != 0 { return number }
        // This fence pairs with the compare and swap of a first invoker, which then checks the
        // lock. On x86, taking the lock has already been a full fence.
        Fence.full()
        return fields.invoker.load(ordering: .relaxed) &- handle.rawValue
      #endif
    }
    nonmutating set {
      let word = handle.rawValue &+ Self.completed(newValue)
      // Release: pairs with an invocation's acquire load.
      fields.invoker.store(word, ordering: .releasing)  // order: invokers
    }
  }

  /// Returns the number with the `open` bits set or cleared. A word is open if invocations need no
  /// special steps and no writer relies on a single invoker. No writer relies on one if several
  /// threads have invoked the multicast, or if the multicast is observed and has an invoker.
  static func completed(_ number: UInt64) -> UInt64 {
    let isPlain = number & (fenced | watched | withPolicies) == 0
    let invoker = number & ~(special | open)
    let isOpen = isPlain && invoker >= (number & observed == 0 ? multipleInvokers : 1)
    return number & ~open | (isOpen ? open : 0)
  }

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

  /// Whether an invocation on another thread may be biased although the multicast is fenced.
  private func mayBeBiased(_ thread: ThreadRecord?) -> Bool {
    if !Fence.Stamp(rawValue: fields.bias.unsettledSince &- 1).isFenced { return true }
    var isOwn = false
    for record in ThreadRegistry.all {
      let biased = record.firstFrame { _, target, _ in target == self.target && target.isBiased }
      if biased == nil { continue }
      if !(record == thread) { return true }
      isOwn = true
    }
    // Other threads may not see this thread's biased frames, so the switch stays unsettled if there
    // are any.
    if !isOwn { fields.bias.unsettledSince = 0 }
    return false
  }

  // MARK: - With no lock held

  /// Whether earlier changes to this multicast still require a heavy fence.
  func needsHeavyFence(_ thread: ThreadRecord?) -> Bool {
    stripe.lock()
    defer { stripe.unlock() }
    return !isCurrent || neededFence(thread) == .heavy
  }

  /// Called after a heavy fence for a change to this multicast. Makes the multicast fenced if such
  /// fences closely follow each other.
  func didFence(from begin: UInt64, to end: UInt64) {
    if invokerNumber & Self.fenced != 0 { return }
    let cost = UInt16(truncatingIfNeeded: min((end &- begin) >> 4, Bias.highestCost))
    let idle = UInt32(truncatingIfNeeded: begin >> 6) &- fields.bias.clock.load(ordering: .relaxed)
    fields.bias.clock.store(UInt32(truncatingIfNeeded: end >> 6), ordering: .relaxed)
    // Convert `idle` to a signed number, because another thread's heavy fence may have ended after
    // this fence began.
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

  /// Called after a fenced invocation. Makes the multicast biased once the full fences have cost
  /// more than a heavy fence would.
  func didCallFenced(_ called: Int64, _ thread: ThreadRecord) {
    // Publishing and withdrawing the frame costs about as much as two calls.
    let share = thread.storage.pointee.fencedCalls &+ UInt32(truncatingIfNeeded: called) &+ 2
    thread.storage.pointee.fencedCalls = share < Bias.share ? share : 0
    // Do not count the calls of a watched invocation, because it executes full fences in either
    // mode.
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
