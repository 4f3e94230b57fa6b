import MulticastHeader
import MulticastShims
import Synchronization

/// A caller's functions, to which the library reports the calls that one multicast makes, or that
/// all multicasts make.
///
/// A bit of the invoker word says whether a multicast is watched, so an unwatched invocation needs
/// no extra check. A watched invocation looks up the watch after each call, under the watches'
/// lock.
///
/// A watch may be removed at any time. Therefore, while one of its functions runs, the watch is the
/// hazard in one of the thread's frames. The hazard is set under the watches' lock. A thread that
/// removes the watch takes the lock later, so it sees the hazard. That thread then waits until the
/// hazard is cleared, as it would wait for a call to a delegate.
struct Watch: Linked {
  let given: multicast_watch
  /// The multicast, or none for the watch of all multicasts.
  let target: Handle
  let id: Token
  var next: UnsafeMutablePointer<Watch>?

  /// The id of the newest watch. It changes under the lock.
  private static let newest = Atomic<Token>(.none)

  private static let flag = Atomic<UInt64>(0)

  /// The bit that the first invoker of a multicast sets in the invoker word: `Multicast.watched` if
  /// all multicasts are watched, otherwise 0.
  ///
  /// Relaxed is enough: if a first invoker does not see a new flag, `update` finds the invoker's
  /// multicast.
  static var ofAll: UInt64 { flag.load(ordering: .relaxed) }

  // MARK: - Setting

  /// Sets, replaces or removes a watch.
  ///
  /// - Returns: `ok`, or `pending` if a function of the previous watch is still running.
  static func set(
    _ target: Handle, _ given: UnsafePointer<multicast_watch>?
  ) throws(Status) -> Status {
    let multicast = target.isNone ? nil : try Multicast.find(target)
    var new: UnsafeMutablePointer<Watch>? = nil
    var known = multicast_watch()
    if let given {
      guard StructSize.read(given, smallest: StructSize.watch, into: &known), known.reserved == 0
      else { throw .invalidArgument }
      new = try allocate(for: target).bindMemory(to: Watch.self, capacity: 1)
    }
    Lock.watches.lock()
    let id = newest.load(ordering: .relaxed).next(.watch, index: 0)
    newest.store(id, ordering: .relaxed)
    var last = Token.none
    var removed: UnsafeMutablePointer<Watch>? = nil
    var number = target.isNone ? 0 : listNumber(of: target)
    repeat {
      take(target, from: list(number), &last, &removed)
      number &+= 1
    } while target.isNone && number <= listNumber(of: .none)
    if let new {
      let list = list(of: target)
      new.initialize(to: Watch(given: known, target: target, id: id, next: first(list)))
      list.pointee = UnsafeMutableRawPointer(new)
      count(new, 1)
    }
    if target.isNone {
      flag.store(new == nil ? 0 : Multicast.watched, ordering: .relaxed)
    }
    Lock.watches.unlock()
    while let watch = removed {
      removed = watch.pointee.next
      Allocator.free(watch)
    }
    update(multicast)
    if last.isNone { return .ok }
    // This fence pairs with the fence in `end`. Either this thread sees that the hazard has been
    // cleared, or the thread in `end` sees the new id and wakes this thread.
    Fence.full()
    return PendingRemovals.wait(for: last, .untilExit)  //~ no_wait_for_watch
  }

  /// Returns a block for a new watch. The watch of all multicasts has a static block, so setting it
  /// needs no memory. The watches' lock guards this block.
  private static func allocate(for target: Handle) throws(Status) -> UnsafeMutableRawPointer {
    let size = MemoryLayout<Watch>.size
    precondition(size <= Int(SHIMS_WATCH_SIZE))  // known to the compiler
    return target.isNone
      ? UnsafeMutableRawPointer(shims_get_watch_of_all()) : try Allocator.allocate(size: size)
  }

  private typealias List = UnsafeMutablePointer<UnsafeMutableRawPointer?>

  private static func listNumber(of target: Handle) -> UInt32 {
    let lists = UInt32(SHIMS_WATCH_LISTS)
    return target.isNone ? lists : target.index % lists
  }

  private static func list(_ number: UInt32) -> List {
    shims_get_watches(number).unsafelyUnwrapped
  }

  private static func list(of target: Handle) -> List { list(listNumber(of: target)) }

  private static func first(_ list: List) -> UnsafeMutablePointer<Watch>? {
    list.pointee?.assumingMemoryBound(to: Watch.self)
  }

  /// Removes a watch, and also the watches of multicasts that no longer exist. The caller holds the
  /// lock.
  private static func take(
    _ target: Handle, from list: List, _ last: inout Token,
    _ removed: inout UnsafeMutablePointer<Watch>?
  ) {
    var next = first(list)
    list.pointee = nil
    while let watch = next {
      next = watch.pointee.next
      let isThat = watch.pointee.target == target
      if isThat { last = watch.pointee.id }
      if watch.pointee.target.isNone {  // it is in the static block
        count(watch, .max)
        continue
      }
      if isThat || !(Multicast(slotOf: watch.pointee.target)?.isCurrent ?? false) {
        count(watch, .max)
        watch.pointee.next = removed
        removed = watch
      } else {
        watch.pointee.next = first(list)
        list.pointee = UnsafeMutableRawPointer(watch)
      }
    }
  }

  /// Called when a watch is set or removed. Updates the number of watches that want listener
  /// warnings. The caller holds the lock.
  private static func count(_ watch: UnsafeMutablePointer<Watch>, _ change: UInt64) {
    guard watch.pointee.warningCount != 0 else { return }
    let watches = InvocationList.warningWatches.load(ordering: .relaxed)
    InvocationList.warningWatches.store(watches &+ change, ordering: .relaxed)
  }

  /// The smallest number of delegates at which the watch is notified, or 0 if it is never notified.
  var warningCount: UInt32 {
    let count =
      given.listener_warning == nil || given.listener_warning_count == 0
      ? 0 : max(given.listener_warning_count, 2)
    return UInt32(min(count, UInt64(UInt32.max)))
  }

  /// Identifies the watch in the header of a list. Never 0.
  var number: UInt32 { UInt32(truncatingIfNeeded: id.rawValue / Handle.oneGeneration) | 1 << 31 }

  /// Updates the `watched` bits in the invoker words. If several threads set watches concurrently,
  /// all of them compute the same bits, so the order of their updates does not matter.
  ///
  /// The first invoker of a multicast registers under the stripe's lock, or at a moment when no
  /// thread holds that lock. If the invoker registers after this thread has held the lock, it sees
  /// the flag. If it registers earlier, this function finds the multicast and sets its bit.
  ///
  /// - Parameter multicast: The multicast to update; nil for all multicasts.
  private static func update(_ multicast: Multicast?) {
    let first = multicast?.handle.index ?? 0
    for number in first..<first &+ (multicast == nil ? Stripe.count : 1) {
      let stripe = Stripe(of: number)
      stripe.lock()
      var indices = Multicast.pool.directory.indices
      indices.index = number
      while let index = indices.next() {
        // The distance from `index` to the stripe's next multicast.
        let distance = (number &- index) % Stripe.count
        indices.index = index &+ (distance == 0 ? Stripe.count : distance)
        if distance != 0 { continue }
        Multicast(slot: index).updateWatched(isOfAll: multicast == nil)
        if multicast != nil { break }
      }
      stripe.unlock()
    }
  }

  // MARK: - Notifier

  /// Returns the watch that applies to a multicast, which is its own watch if there is one, and
  /// otherwise the watch of all multicasts. The caller holds the lock.
  ///
  /// - Parameter target: The handle of the multicast. The handle's kind may have changed, because
  ///   the multicast may be destroyed while its delegates are being called.
  static func find(_ target: Handle) -> UnsafeMutablePointer<Watch>? {
    first(list(of: target))?.first { $0.pointee.target.changed(to: target.kind) == target }
      ?? first(list(of: .none))
  }

  static func current(for target: Handle) -> Watch? {
    Lock.watches.lock()
    defer { Lock.watches.unlock() }
    return find(target)?.pointee
  }

  static func isSet(for target: Handle) -> Bool { current(for: target) != nil }

  /// Returns a delegate's multicast, for `watching`. The caller calls this function before it
  /// checks whether the delegate is live. If the delegate is live, the result is its multicast. A
  /// read after the call to the delegate would be too late, because the delegate may destroy the
  /// multicast, and the slot may then be reused.
  static func target(of token: Token) -> Handle {
    Multicast(slot: Registration(index: token.index).owner).handle
  }

  /// Makes a call, and notifies the watch while the hazard is still set.
  @inline(__always)
  static func watching(
    _ registration: Registration, _ token: Token, of target: Handle, _ event: UInt32,
    _ context: UnsafeMutableRawPointer?, _ call: () -> Bool
  ) -> Bool {
    let function = registration.storage.pointee.function
    shims_probe_call_begin(token.rawValue, UInt64(event), function, context)
    let begin = shims_now_ns()
    let result = call()
    notify(
      target, token, registration.label, event, since: begin, isStuck: false,
      on: ThreadRecord.current.unsafelyUnwrapped)
    return result
  }

  /// Notifies a multicast's watch that a call has returned, or that a thread has been waiting for a
  /// call for a long time. No lock is held.
  @inline(never)
  static func notify(
    _ target: Handle, _ token: Token, _ label: UnsafeMutablePointer<shims_label>?,
    _ event: UInt32, since begin: UInt64, isStuck: Bool, on thread: ThreadRecord
  ) {
    let elapsed = shims_now_ns() &- begin
    let text = label.flatMap { shims_get_label($0) }
    if !isStuck { shims_probe_call_end(token.rawValue, UInt64(event), elapsed, text) }
    // Do not notify the watch of calls that are made inside a watch's function.
    let isNotified = !thread.isInside(.watch)
    Lock.watches.lock()
    guard let watch = find(target) else { return Lock.watches.unlock() }
    let (given, id) = (watch.pointee.given, watch.pointee.id)
    let isLong = given.slow_ns != 0 && elapsed >= given.slow_ns
    let long = !isLong ? nil : isStuck ? given.stuck : given.slow
    let called = isStuck ? nil : given.called
    if !isStuck { CallStatistics.add(token, calls: 1, taking: elapsed) }
    let isNeeded = isNotified && (long != nil || called != nil)
    guard let frame = unlockAndBegin(id, isNeeded, thread) else { return }
    let token = multicast_token(id: token.rawValue)
    long?(given.context, token, text, elapsed)
    called?(given.context, token, event, elapsed)
    end(id, frame, thread)
  }

  /// Publishes a frame for calls to a watch's functions, and then releases the watches' lock.
  ///
  /// - Returns: nil if no function has to be called, or if calls are nested too deeply.
  @inline(__always)
  static func unlockAndBegin(_ id: Token, _ isNeeded: Bool, _ thread: ThreadRecord) -> Frame? {
    let frame = isNeeded ? thread.push() : nil
    if let frame {
      frame.publish(.watch)
      frame.setHazard(id)  //~ no_hazard_of_watch
    }
    Lock.watches.unlock()
    if frame != nil { Lock.checkNoneIsHeld() }  //~ notified_under_lock
    return frame
  }

  @inline(__always)
  static func end(_ id: Token, _ frame: Frame, _ thread: ThreadRecord) {
    frame.clearHazard()
    thread.pop(frame)
    // Pairs with the fence in `set`.
    Fence.full()
    //~ no_wake_after_watch
    if newest.load(ordering: .relaxed) != id { Waits.wake(id.rawValue) }
  }

  /// Called after a queue has accepted or refused a call.
  static func didAppend(
    _ token: Token, _ event: UInt32, to queue: Queue, _ outcome: Queue.EnqueueResult
  ) {
    shims_probe_queue_append(
      queue.handle.rawValue, token.rawValue, UInt64(event), UInt64(outcome.rawValue))
    Lock.watches.lock()
    CallStatistics.add(
      token, queued: outcome == .queued ? 1 : 0, dropped: outcome == .refused ? 1 : 0)
    Lock.watches.unlock()
  }
}

extension Multicast {
  /// Updates the `watched` bit in this multicast's invoker word. The caller holds the stripe's
  /// lock.
  ///
  /// - Parameter isOfAll: Whether the watch of all multicasts has been set or removed.
  @inline(never) fileprivate func updateWatched(isOfAll: Bool) {
    guard isCurrent, handle.isOfMulticast else { return }
    let watch = Watch.current(for: handle)
    let bit = watch == nil ? Self.watchedAlways : Self.watched
    invokerNumber = invokerNumber & ~Self.watched | bit
    // If the multicast has its own watch, keep the count at which that watch is warned next.
    if isOfAll, let watch, !watch.target.isNone { return }  //~ listener_warning_of_own_reset
    // A concurrent add may already have found the new watch and notified it.
    //~ listener_warning_set_again
    if let list, let watch, list.header.warningWatch == watch.number { return }
    //~ listener_warning_not_set
    list?.header.setWarning(watch?.warningCount ?? 0, of: watch?.number ?? 0)
  }
}

/// Detects that a thread has been waiting for a call for a long time, and notifies the watch once.
struct StallDetection {
  private let target: Handle
  private let begin: UInt64
  private var moment = UInt64.max

  init(for token: Token) {
    let registration = Registration(slotOf: token)
    self.init(with: registration.map { Multicast(slot: $0.owner).handle } ?? .none)
    // A thread that removes a watch waits for a watch's function, not for a delegate, so it
    // notifies no other watch.
    if token.kind == .watch { moment = .max }
  }

  init(with target: Handle) {
    self.target = target
    begin = shims_now_ns()
    Lock.watches.lock()
    let slow = Watch.find(target).map { $0.pointee.given.slow_ns } ?? 0
    Lock.watches.unlock()
    let (end, isBeyond) = begin.addingReportingOverflow(slow)
    if slow != 0 && !isBeyond { moment = end }
  }

  /// Limits the timeout of the thread's sleep, so that the thread checks `isOver` in time.
  func limit(_ timeout: Timeout) -> Timeout { Timeout(deadline: min(timeout.deadline, moment)) }

  var isOver: Bool { moment != .max && shims_now_ns() >= moment }

  /// Notifies the watch and returns true if the thread has been waiting too long. No lock is held.
  ///
  /// - Parameter token: The token of the delegate whose call the thread is waiting for; none if it
  ///   is not known.
  mutating func notifyIfStalled(_ token: Token) -> Bool {
    guard isOver else { return false }
    moment = .max
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else { return true }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    // Copy the label, because the registration and its label may be freed as soon as the call ends.
    var label = shims_label()
    var hasLabel = false
    if let registration = Registration(slotOf: token) {
      let (stripe, id) = registration.lockStripe()
      if id.changed(to: .registration) == token, let known = registration.label {
        label = known.pointee
        hasLabel = true
      }
      stripe.unlock()
    }
    withUnsafeMutablePointer(to: &label) {
      Watch.notify(
        target, token, hasLabel ? $0 : nil, 0, since: begin, isStuck: true, on: thread)
    }
    return true
  }
}
