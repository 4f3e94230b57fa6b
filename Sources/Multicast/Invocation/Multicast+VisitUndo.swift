import MulticastHeader
import MulticastShims
import Synchronization

extension Multicast {
  /// Visits every delegate. If the visitor returns false, stops, and undoes the earlier visits if
  /// `undo` is not nil.
  ///
  /// - Parameter undo: Undoes a visit; nil if nothing is to be undone.
  /// - Returns: the number of visits that have not been undone, or a negative status code.
  func visit(_ visit: Visit, orUndo undo: Visit?) -> Int64 {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else {
      return Status.outOfMemory.count
    }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    let count = withList(on: thread) { list, frame, mode in
      list.visit(visit, orUndo: undo, in: frame, mode)
    }
    invokeDeferred(on: thread)
    return count
  }
}

/// Records which delegates have been visited, with one bit per delegate. The frame retains the
/// memory like a payload, because the thread may end inside a visit.
private struct VisitMarks {
  private let bits: UnsafeMutablePointer<UInt8>

  init(_ count: Int, in frame: Frame) throws(Status) {
    let payload = try Payload(zeros: count / 8 &+ 1)
    payload.pass(to: frame)
    bits = UnsafeMutablePointer(
      mutating: payload.bytes.unsafelyUnwrapped.assumingMemoryBound(to: UInt8.self))
  }

  func set(_ position: Int) { bits[position / 8] |= 1 << UInt8(position % 8) }
  func isSet(_ position: Int) -> Bool { bits[position / 8] & 1 << UInt8(position % 8) != 0 }
}

extension InvocationList {
  /// Visits every delegate, within an invocation's frame.
  func visit(
    _ visit: Visit, orUndo undo: Visit?, in frame: Frame, _ mode: Multicast.Mode
  ) -> Int64 {
    let target = mode.isWatched ? Multicast(frame.target).handle.rawValue : 0
    if mode.isWatched { shims_probe_invoke_begin(target, 0, nil, 0) }
    let visited =
      undo.map { self.visit(visit, orUndo: $0, frame, mode) }
      ?? AnyCall.with(visit) { call in
        var walk = Walk(in: frame, mode)
        return walk.run(call, from: address, to: end)
      }
    if mode.isWatched { shims_probe_invoke_end(target, 0, visited) }
    return visited
  }

  private func visit(
    _ visit: Visit, orUndo undo: Visit, _ frame: Frame, _ mode: Multicast.Mode
  ) -> Int64 {
    let count = end - address
    guard let marks = try? VisitMarks(count, in: frame) else { return Status.outOfMemory.count }
    defer { Payload.release(of: frame) }
    var walk = Walk(in: frame, mode)
    var (position, visited) = (0, Int64(0))
    var outcome = Walk.Outcome()
    AnyCall.with(visit) { call in
      while outcome.goesOn && position < count {
        outcome = walk.step(call, address[position])
        if outcome.isCalled { visited &+= 1 }
        if outcome.isCalled && outcome.goesOn { marks.set(position) }
        position &+= 1
      }
    }
    // Undo the visits in reverse order. Skip delegates that have since been removed, but include
    // paused delegates.
    AnyCall.with(undo) { call in
      while !outcome.goesOn && position > 0 {
        position &-= 1
        if marks.isSet(position) { _ = walk.step(call, address[position]) }
      }
      walk.finish(call)
    }
    return outcome.goesOn ? visited : 0
  }
}
