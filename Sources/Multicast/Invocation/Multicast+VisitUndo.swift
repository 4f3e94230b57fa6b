import MulticastHeader
import MulticastShims
import Synchronization

extension Multicast {
  /// Visits every delegate. If the visitor refuses one, the visit stops, or the visits before that
  /// one are undone.
  ///
  /// - Parameter undo: nil to stop.
  /// - Returns: how many stand visited, or the number of a status.
  func visit(_ visit: Visit, orUndo undo: Visit?) -> Int64 {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      return Status.outOfMemory.count
    }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    let count = withList(on: thread) { list, frame, mode in
      self.visit(visit, orUndo: undo, in: list, frame, mode)
    }
    invokeDeferred(on: thread)
    return count
  }

  /// The same, with the frame of an invocation.
  func visit(
    _ visit: Visit, orUndo undo: Visit?, in list: InvocationList, _ frame: Frame, _ mode: Mode
  ) -> Int64 {
    if mode.isWatched { shims_probe_invoke_begin(handle.rawValue, 0, nil, 0) }
    let count =
      mode.isBiased
      ? self.visit(visit, orUndo: undo, in: list, frame, mode, LightFence.self)
      : self.visit(visit, orUndo: undo, in: list, frame, mode, FullFence.self)
    if mode.isWatched { shims_probe_invoke_end(handle.rawValue, 0, count) }
    return count
  }

  private func visit<Fence: CallFence>(
    _ visit: Visit, orUndo undo: Visit?, in list: InvocationList, _ frame: Frame, _ mode: Mode,
    _ fence: Fence.Type
  ) -> Int64 {
    // Acquire: pairs with `publish`, as in an invocation.
    let count = list.header.count.load(ordering: .acquiring)  // order: entries
    let locks = mode.hasPolicies ? policies.locks : ContextLock()
    guard let undo else { return list.visit(visit, count, nil, locks, frame, mode, fence).visited }
    guard let marks = try? VisitMarks(count, in: frame) else { return Status.outOfMemory.count }
    var (visited, end) = list.visit(visit, count, marks, locks, frame, mode, fence)
    if end < count {
      list.undo(undo, before: end, marks, frame, mode, fence)
      visited = 0
    }
    Payload.release(of: frame)
    return visited
  }
}

/// Which delegates were visited: a bit for each. The frame retains the memory, as it retains a
/// payload: the thread may end inside a visit.
private struct VisitMarks {
  private let bits: UnsafeMutablePointer<UInt8>

  init(_ count: UInt32, in frame: Frame) throws(Status) {
    let payload = try Payload(zeros: Int(count / 8 &+ 1))
    payload.pass(to: frame)
    bits = UnsafeMutablePointer(
      mutating: payload.bytes.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self))
  }

  func set(_ position: UInt32) { bits[Int(position / 8)] |= 1 << UInt8(position % 8) }
  func isSet(_ position: UInt32) -> Bool { bits[Int(position / 8)] & 1 << UInt8(position % 8) != 0 }
}

extension InvocationList {
  /// - Parameter locks: The multicast's, or those of a later occupant of its slot.
  @inline(never)
  @_optimize(speed)
  fileprivate func visit<Fence: CallFence>(
    _ visit: Visit, _ count: UInt32, _ marks: VisitMarks?, _ locks: ContextLock, _ frame: Frame,
    _ mode: Multicast.Mode, _ fence: Fence.Type
  ) -> (visited: Int64, end: UInt32) {
    var visited: Int64 = 0
    var position: UInt32 = 0
    var details = visit.details
    while position < count {
      let entry = self.entry(position)
      let outcome =
        Self.isShared(entry) && !mode.isWatched
        ? Self.callShared(visit, entry, locks, in: frame, fence)
        : AnyCall.with(&details) { Self.call($0, entry, in: frame, mode) }
      if outcome.isCalled { visited &+= 1 }
      if !outcome.goesOn { break }
      if outcome.isCalled { marks?.set(position) }
      position &+= 1
    }
    return (visited, position)
  }

  /// Whether the context is locked by the multicast's functions, and nothing else is special.
  private static func isShared(_ entry: Address) -> Bool {
    entry.pointee.state.load(ordering: .relaxed) & State.special == State.shared
  }

  /// The same as `callSpecial` for such a delegate. It reads the entry and `locks` only, not the
  /// registration.
  ///
  /// If `locks` belong to the slot's next occupant, this multicast has ended, and its entries had
  /// been marked before. The functions were read with acquire; so the mark is seen.
  private static func callShared<Fence: CallFence>(
    _ visit: Visit, _ entry: Address, _ locks: ContextLock, in frame: Frame,
    _ fence: Fence.Type
  ) -> CallResult {
    protect(entry, in: frame, fence, if: isShared(entry)) {
      Lock.checkNoneIsHeld()
      guard let strong = locks.lock.unsafelyUnwrapped(entry.pointee.context) else {
        _ = Multicast.claim(entry.pointee.token)
        return CallResult()
      }
      var outcome = CallResult()
      // Locking may have removed it, or have taken so long that another thread has.
      if !isDead(entry) {
        outcome = CallResult(isCalled: true, goesOn: visit(entry.pointee.function, strong))
      }
      locks.unlock.unsafelyUnwrapped(strong)
      return outcome
    } ?? CallResult()
  }

  /// Undoes the visits in reverse. Delegates that were removed meanwhile are left out; paused
  /// delegates are not.
  fileprivate func undo<Fence: CallFence>(
    _ undo: Visit, before end: UInt32, _ marks: VisitMarks, _ frame: Frame, _ mode: Multicast.Mode,
    _ fence: Fence.Type
  ) {
    var position = end
    while position > 0 {
      position &-= 1
      if !marks.isSet(position) { continue }
      let entry = self.entry(position)
      let token = entry.pointee.token
      let target = mode.isWatched ? Watch.target(of: token) : .none
      _ = Self.protect(entry, in: frame, fence, if: !Self.isDead(entry)) {
        Registration(index: token.index).callProtected(
          token, context: entry.pointee.context,
          entry.pointee.state.load(ordering: .relaxed) & State.shared
        ) {
          let (function, context) = (entry.pointee.function, $0)
          if !mode.isWatched { return _ = undo(function, context) }
          _ = Watch.watching(token, of: target, 0, function, context) { undo(function, context) }
        }
      }
    }
  }
}
