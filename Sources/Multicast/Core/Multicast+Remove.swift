import CMulticast
import Synchronization

/// Which delegates of a multicast are meant.
enum Selection {
  case equal(multicast_delegate)
  case oneOf(UnsafePointer<multicast_delegate>, count: Int)
  case context(UnsafeMutableRawPointer?)
  case all

  @inline(__always)
  func includes(_ entry: UnsafeMutablePointer<InvocationList.Entry>) -> Bool {
    switch self {
    case .equal(let delegate): InvocationList.delegate(of: entry) == delegate
    case .oneOf(let delegates, let count): contains(delegates, count, entry)
    case .context(let context): entry.pointee.context == context
    case .all: true
    }
  }

  private func contains(
    _ delegates: UnsafePointer<multicast_delegate>, _ count: Int,
    _ entry: UnsafeMutablePointer<InvocationList.Entry>
  ) -> Bool {
    var index = 0
    while index != count {
      if delegates[index] == InvocationList.delegate(of: entry) { return true }
      index &+= 1
    }
    return false
  }
}

extension Multicast {
  // MARK: - Removing one

  /// Removes the first of those selected.
  func removeFirst(_ selection: Selection) -> Status {
    removeOne(orElse: selection) { list in list.firstPosition { selection.includes($0) } }
  }

  /// Removes the delegate at a place in the order of invocation.
  func remove(at index: Int) -> Status {
    removeOne(orElse: nil) { list in
      guard index >= 0 && index < Int(list.live) else { return nil }
      if list.dead == 0 { return UInt32(truncatingIfNeeded: index) }
      var ahead = index
      return list.firstPosition { _ in
        defer { ahead &-= 1 }
        return ahead == 0
      }
    }
  }

  /// - Parameter selection: What to wait for where `find` finds nothing: another thread may be
  ///   removing it.
  @inline(__always)
  private func removeOne(
    orElse selection: Selection?, _ find: (InvocationList) -> UInt32?
  ) -> Status {
    var cleanup = Cleanup()
    var isFound = false
    do throws(Status) {
      try withLock { () throws(Status) in
        cleanup.isAlone = isAlone(cleanup.thread)
        guard let list, let position = find(list) else { return }
        isFound = true
        unlink(position, of: list, &cleanup)
        tidy(&cleanup)
      }
    } catch {
      return error
    }
    if isFound { return cleanup.finish(self) }
    if let selection, !cleanup.isAlone, settle(selection, cleanup) == .system { return .system }
    return .notFound
  }

  /// Removes a registration by its token.
  static func remove(
    token: UInt64, patience: Departures.Patience
  ) -> Status {
    guard let registration = Registration(slotOf: token) else { return .invalidHandle }
    let stripe = Stripe(of: registration.owner)
    stripe.lock()
    guard registration.id == token else {
      let id = registration.id
      stripe.unlock()
      return waitForRemoved(token, foundAs: id, patience)
    }
    let multicast = Multicast(ownerOf: registration)
    var cleanup = Cleanup()
    let list = multicast.list.unsafelyUnwrapped
    multicast.unlink(registration.storage.pointee.link, of: list, &cleanup)
    multicast.tidy(&cleanup)
    stripe.unlock()
    return cleanup.finish(multicast, patience: patience)
  }

  /// A token that is stale may have been removed just now, by a thread that did not wait.
  private static func waitForRemoved(
    _ token: UInt64, foundAs id: UInt64, _ patience: Departures.Patience
  ) -> Status {
    // Never given out: nothing of it can run.
    if Handle.generation(of: token) > Handle.generation(of: id) { return .invalidHandle }
    if case .none = patience { return .invalidHandle }
    // As long as it is leaving, its remover may not have had its heavy fence yet.
    if id == Handle.change(token, to: Handle.Kind.leaving) {
      guard Fence.heavy() else { return .system }
    }
    let status = Departures.wait(for: token, removed: nil, by: .current, patience: patience)
    return status == .timeout ? .timeout : .invalidHandle
  }

  // MARK: - Removing several

  /// Removes all that are selected.
  ///
  /// - Returns: how many those were.
  func removeAll(_ selection: Selection) throws(Status) -> Int {
    var cleanup = Cleanup()
    let removed = try withLock { () throws(Status) in
      let removed = unlinkAll(selection, &cleanup)
      tidy(&cleanup)
      return removed
    }
    if finish(cleanup, settling: selection) == .system { throw .system }
    return removed
  }

  /// Removes the first that equals each of some delegates.
  ///
  /// - Returns: how many were removed.
  func removeEach(
    _ delegates: UnsafePointer<multicast_delegate>?, count: Int
  ) throws(Status) -> Int {
    var cleanup = Cleanup()
    let removed = try withLock { () throws(Status) in
      cleanup.isAlone = isAlone(cleanup.thread)
      var removed = 0
      guard let list, let delegates else { return removed }
      var index = 0
      while index != count {
        let selection = Selection.equal(delegates[index])
        if let position = list.firstPosition(where: { selection.includes($0) }) {
          unlink(position, of: list, &cleanup)
          removed &+= 1
        }
        index &+= 1
      }
      tidy(&cleanup)
      return removed
    }
    guard let delegates else { return removed }
    let selection = Selection.oneOf(delegates, count: count)
    if finish(cleanup, settling: selection) == .system { throw .system }
    return removed
  }

  /// Finishes a removal of many, then waits for calls of what others removed before.
  func finish(_ cleanup: Cleanup, settling selection: Selection) -> Status {
    let status = cleanup.finish(self)
    if status == .system || cleanup.isAlone { return status }
    let settled = settle(selection, cleanup)
    return settled == .ok ? status : settled
  }

  // MARK: - Under the stripe's lock

  /// Unlinks all that are selected; from the last, so that their releases run from the first.
  func unlinkAll(_ selection: Selection, _ cleanup: inout Cleanup) -> Int {
    cleanup.isAlone = isAlone(cleanup.thread)
    guard let list else { return 0 }
    var removed = 0
    var position = list.count
    while position > 0 {
      position &-= 1
      let entry = list.entry(position)
      if InvocationList.isDead(entry) || !selection.includes(entry) { continue }
      unlink(position, of: list, &cleanup)
      removed &+= 1
    }
    return removed
  }

  /// Takes a delegate out: no call of it begins in an invocation that sees this.
  func unlink(_ position: UInt32, of list: InvocationList, _ cleanup: inout Cleanup) {
    let token = list.entry(position).pointee.token
    mark(position, of: list, set: InvocationList.State.dead)
    list.header.pointee.live &-= 1
    let registration = Registration(index: Handle.index(of: token))
    registration.retire()
    leave(registration, token, &cleanup)
  }

  /// Gives a registration back at once where it cannot be in a call, otherwise leaves that for when
  /// the lock is let go of.
  func leave(_ registration: Registration, _ token: UInt64, _ cleanup: inout Cleanup) {
    cleanup.isAlone = isAlone(cleanup.thread)
    if !cleanup.isAlone || cleanup.thread?.isCalling(token) ?? false {
      return cleanup.leaving.push(registration)
    }
    let extras = registration.storage.pointee.extras
    registration.giveBack(to: stripe)
    if let extras { cleanup.release(extras) }
  }

  /// Shrinks the list where too little of it is live. Failing to is harmless.
  func tidy(_ cleanup: inout Cleanup) {
    guard let list else { return }
    let isQuiet = self.isQuiet(cleanup.thread)
    if isQuiet { list.dropDeadTail() }
    let (live, capacity) = (list.live, list.header.pointee.capacity)
    let isSparse = capacity > 30 && live < capacity / 8
    guard list.dead > live &+ 8 || isSparse else { return }
    if isQuiet && !isSparse { return list.compactInPlace() }
    let smaller = InvocationList.allocate(
      capacity: InvocationList.capacity(for: live &* 2), owner: handle)
    if let smaller {
      _ = list.copyLive(to: smaller)
      smaller.refreshLastPriority()
      replaceList(by: smaller, &cleanup)
    } else if isQuiet {
      list.compactInPlace()
    }
  }

  // MARK: - What others removed

  /// Waits for calls on other threads of selected delegates that were removed already, by somebody
  /// who did not wait or is just doing it.
  private func settle(_ selection: Selection, _ cleanup: Cleanup) -> Status {
    let thread = cleanup.thread
    // Whoever removed them may not have had the heavy fence yet; ours, if any, has served for all.
    if !cleanup.needsFence {
      guard hasDead(selection) else { return .ok }
      guard Fence.heavy() else { return .system }
    }
    var status = Status.ok
    for record in ThreadRegistry.all {
      if record == thread { continue }
      var depth: UInt32 = 0
      while depth < ThreadRecord.frameLimit {
        let frame = record.frame(depth)
        let invoked = frame.pointee.multicast.load(ordering: .acquiring)
        if invoked == 0 { break }
        let token = frame.pointee.delegate.load(ordering: .acquiring)
        if invoked == address && token != 0 && hasDead(selection, token: token) {
          let outcome = Departures.wait(
            for: token, removed: nil, by: thread, patience: .endless)
          if outcome != .ok { status = outcome }
        }
        depth &+= 1
      }
    }
    return status
  }

  /// Whether a list that an invocation may be reading has a dead delegate that is selected.
  private func hasDead(_ selection: Selection, token: UInt64? = nil) -> Bool {
    if let token, Registration.isLive(token) { return false }
    stripe.lock()
    defer { stripe.unlock() }
    var isFound = false
    let look = { (list: InvocationList) in
      var position: UInt32 = 0
      while position < list.count && !isFound {
        let entry = list.entry(position)
        isFound =
          InvocationList.isDead(entry) && selection.includes(entry)
          && (token == nil || token == entry.pointee.token)
        position &+= 1
      }
    }
    if let list, list.header.pointee.owner == handle { look(list) }
    forEachRetired(look)
    return isFound
  }
}
