import MulticastHeader
import MulticastShims
import Synchronization

/// The arguments of an add.
struct NewDelegates {
  let delegates: UnsafePointer<multicast_delegate>
  let count: UInt32
  let options: Options
  var tokens: UnsafeMutablePointer<multicast_token>?

  /// The replay that this add begins, if any. A replay needs `tokens`.
  var replay: Replay.Run? = nil

  /// A linked list of details, one block per delegate; nil if the options need no details.
  private(set) var details: RegistrationDetails.Address? = nil

  /// Whether a single add may add this many delegates. The limit is the number of slot indices. It
  /// is checked before the library uses any other argument. A caller's `size_t` is too large if it
  /// is negative as an `Int`.
  static func allows(_ count: Int) -> Bool { count >= 0 && count <= 1 << Int(Handle.indexBits) }

  init(
    _ delegates: UnsafePointer<multicast_delegate>, count: UInt32, _ options: Options,
    _ tokens: UnsafeMutablePointer<multicast_token>?
  ) {
    self.delegates = delegates
    self.count = count
    self.options = options
    self.tokens = tokens
  }

  subscript(index: UInt32) -> multicast_delegate { delegates[Int(index)] }

  var flags: UInt32 {
    let isSpecial =
      options.isOnce || options.sharesLock || options.isFiltered || options.isReplayed
      || options.isWeak || options.destination != nil
    return (options.isOnce ? Registration.Flags.once : 0)
      | (options.sharesLock ? Registration.Flags.shared : 0)  //~ flags_without_shared_lock
      | (isSpecial ? Registration.Flags.special : 0)  //~ flags_without_special
  }

  var areValid: Bool {
    if options.isContradictory { return false }
    for index in 0..<count {
      if self[index].function == nil { return false }
    }
    return true
  }

  /// Whether this delegate is replaced immediately, by an equal delegate later in the same add.
  func isReplaced(_ index: UInt32) -> Bool {
    guard options.isUnique else { return false }
    for later in index &+ 1..<count {
      if self[later] == self[index] { return true }
    }
    return false
  }

  // MARK: - Details

  @inline(never) mutating func allocateDetails() throws(Status) {
    guard options.needsDetails else { return }
    var index = count
    while index > 0 {
      index &-= 1
      let new = try RegistrationDetails.allocate(options, self[index])
      new.pointee.replayed.store(UInt(bitPattern: details), ordering: .relaxed)
      details = new
    }
  }

  mutating func takeDetails() -> RegistrationDetails.Address? {
    guard let first = details else { return nil }
    details = UnsafeMutablePointer(bitPattern: first.pointee.replayed.load(ordering: .relaxed))
    return first
  }

  // MARK: - Failure

  /// Ends a failed add: clears the tokens and runs the release functions.
  @inline(never) mutating func abandon() {
    while let details = takeDetails() { RegistrationDetails.deallocate(details) }
    Self.clear(tokens, count)
    guard let release = options.given.release else { return }
    for index in 0..<count {
      CallerCode.releasing { release(self[index].context) }
    }
  }

  static func abandon(
    _ delegate: multicast_delegate, _ release: RegistrationDetails.Release?,
    _ token: UnsafeMutablePointer<multicast_token>?
  ) {
    clear(token, 1)
    if let release { CallerCode.releasing { release(delegate.context) } }
  }

  static func clear(_ tokens: UnsafeMutablePointer<multicast_token>?, _ count: UInt32) {
    guard let tokens else { return }
    for index in 0..<Int(count) {
      Token.none.store(to: tokens + index)
    }
  }
}

extension Multicast {
  /// Fast path for most adds. Adds a delegate with no option except a release function, if its
  /// entry can be appended. May replace the list with a larger one.
  ///
  /// - Returns: false if this path is not sufficient or the add is not possible, in which case
  ///   nothing has changed.
  @inline(__always)
  @_optimize(speed)
  func addPlain(
    _ delegate: multicast_delegate, _ release: RegistrationDetails.Release?,
    _ out: UnsafeMutablePointer<multicast_token>?
  ) throws(Status) -> Bool {
    if delegate.function == nil { return false }
    let stripe = self.stripe
    stripe.lockInline()
    defer { stripe.unlockInline() }
    // Policies, notifications of changes, and race detectors are handled by `add`.
    //~ observed_add_not_notified
    guard isCurrent, invokerNumber & (Self.withPolicies | Self.observed | Self.watched) == 0,
      try makeRoomAtOnce(), let list, list.canAppend(priority: 0),
      let registration = Registration.takeVacant(from: stripe, owner: handle.index)
    else { return false }
    if let release { registration.setRelease(release) }
    let token = registration.activate(delegate, to: out)
    list.write(registration, token, ahead: 0)
    list.publish(1, priority: 0)
    didAdd()
    checkInvariants()
    return true
  }

  /// Adds a caller's delegates. If the add fails, calls their release functions.
  ///
  /// - Parameters:
  ///   - count: A number accepted by `NewDelegates.allows`.
  ///   - options: The caller's options, or nil if they are invalid, in which case none of them is
  ///     used, not even `release`.
  ///   - findTarget: Called when all other arguments are known to be valid, and again if the
  ///     multicast that it returned is destroyed before the delegates have been added.
  static func add(
    _ delegates: UnsafePointer<multicast_delegate>?, _ count: Int, _ options: Options?,
    _ tokens: UnsafeMutablePointer<multicast_token>?,
    to findTarget: () throws(Status) -> Multicast
  ) -> Status {
    let number = UInt32(truncatingIfNeeded: count)
    guard let delegates, let options else {
      if count == 0, let options {
        if options.isContradictory { return .invalidArgument }
        guard hasValidHandles(options) else { return .invalidHandle }
        do throws(Status) { _ = try findTarget() } catch { return error }
        return .ok
      }
      NewDelegates.clear(tokens, number)
      return .invalidArgument
    }
    var new = NewDelegates(delegates, count: number, options, tokens)
    do throws(Status) {
      guard new.areValid else { throw .invalidArgument }
      guard hasValidHandles(options) else { throw .invalidHandle }
      try new.allocateDetails()
    } catch {
      new.abandon()
      return error
    }
    var hasCollected = false
    while true {
      do throws(Status) {
        let target = try findTarget()
        if try options.isReplayed ? target.addAndReplay(&new) : target.add(&new) { return .ok }
      } catch {
        guard error == .limit && !hasCollected else {
          new.abandon()
          return error
        }
        hasCollected = true
        Registration.collect()  // slabs of other stripes may be vacant
      }
    }
  }

  private static func hasValidHandles(_ options: Options) -> Bool {
    !options.hasInvalidQueue && Lifetime.mayBeJoined(options.lifetime)
  }

  /// Adds all delegates in order, or none if it fails.
  ///
  /// - Returns: false if the multicast has been destroyed, in which case nothing has changed.
  /// - Complexity: O(1) amortized; O(n) for an insertion by priority or a search for equal
  ///   delegates.
  func add(_ new: inout NewDelegates) throws(Status) -> Bool {
    if new.count == 0 { return isCurrent }
    var removal = Removal(from: self)
    var warning: ListenerWarning? = nil
    let stripe = self.stripe
    stripe.lock()
    guard isCurrent else {
      stripe.unlock()
      return false
    }
    do throws(Status) {
      var registrations = RegistrationChain()
      do throws(Status) {
        try take(&new, &registrations, from: stripe)
        let spare = try makeRoom(for: new.count, new.options.given.priority, removal.lists.thread)
        do throws(Status) {
          try Lifetime.join(registrations, new.options)
        } catch {
          spare?.deallocate()
          throw error
        }
        insert(new, &registrations, spare, &removal)  // from now on, nothing can fail
        if let replay = new.replay { begin(replay, new) }
        if InvocationList.areWarningsSet { warning = ListenerWarning(in: self) }
        checkInvariants()
      } catch {
        while let registration = registrations.pop() {
          if let details = registration.reclaim(to: stripe).details {
            RegistrationDetails.deallocate(details)
          }
        }
        throw error
      }
    } catch {
      stripe.unlock()
      throw error
    }
    stripe.unlock()
    // Do not wait for calls to replaced delegates, which may still be running.
    _ = removal.complete(.none)
    Policies.notify(self)
    warning?.notify()
    return true
  }

  /// Takes a registration for each delegate, and attaches the details or the release function.
  @_optimize(speed)
  private func take(
    _ new: inout NewDelegates, _ registrations: inout RegistrationChain, from stripe: Stripe
  ) throws(Status) {
    for _ in 0..<new.count {
      registrations.push(try Registration.take(from: stripe, owner: handle.index))
    }
    // The registration taken last is first in the chain, so it is used for the first delegate.
    for registration in registrations {
      if let details = new.takeDetails() {
        details.pointee.multicast = handle
        // `replayed` keeps this value until the replay is over (see `Replay`).
        let isReplayed = new.replay != nil
        let replayed = isReplayed ? RegistrationDetails.isReplaying : 0  //~ called_before_replayed
        details.pointee.replayed.store(replayed, ordering: .relaxed)
        registration.setDetails(details)
      } else if let release = new.options.finalRelease {
        registration.setRelease(release)
      }
    }
  }

  /// Makes room for another `count` delegates.
  ///
  /// - Returns: nil if the delegates can be appended to the current list; otherwise an empty list
  ///   that must replace it.
  private func makeRoom(
    for count: UInt32, _ priority: Int32, _ thread: ThreadRecord?
  ) throws(Status) -> InvocationList? {
    var needed = count
    if let list {
      if list.canAppend(priority: priority) {
        if list.room >= count { return nil }
        if list.dead >= list.live / 4 &+ count && isQuiescent(thread) {
          list.compactInPlace()
          return nil
        }
      }
      // If there are dead entries, also add room for a quarter of the live entries. Otherwise a
      // program that repeatedly adds and removes one delegate would copy an almost full list every
      // time.
      needed &+= list.live &+ (list.dead > 0 ? list.live / 4 : 0)
    }
    return try InvocationList.allocate(for: needed, owner: handle)
  }

  private func insert(
    _ new: NewDelegates, _ registrations: inout RegistrationChain,
    _ spare: InvocationList?, _ removal: inout Removal
  ) {
    if new.options.isUnique { removeEqual(to: new, &removal) }
    let priority = new.options.given.priority
    let target = spare ?? list.unsafelyUnwrapped
    var rest: UInt32 = 0
    if let spare, let list { rest = list.copyLive(to: spare, lowest: priority) }

    var index: UInt32 = 0
    var added: UInt32 = 0
    while let registration = registrations.pop() {
      RaceDetector.didAdd(registration.storage)
      let token = registration.activate(
        new[index], new.flags, to: new.tokens.map { $0 + Int(index) })
      if new.isReplaced(index) {
        removal.retire(registration, token, in: self)
      } else {
        target.write(registration, token, ahead: added)
        added &+= 1
      }
      index &+= 1
    }
    target.publish(added, priority: priority)
    didAdd()

    guard let spare else { return }
    let end = spare.count
    if let list, !list.canAppend(priority: priority) {
      _ = list.copyLive(to: spare, from: rest)
      spare.refreshLastPriority()
    }
    replaceList(by: spare, &removal.lists)
    spare.didInsert(added, at: end &- added)
  }

  private func removeEqual(to new: NewDelegates, _ removal: inout Removal) {
    guard let list else { return }
    for index in 0..<new.count {
      while let found = list.first(new[index]) { removal.unlink(found, from: list, in: self) }
    }
  }
}

extension Multicast {
  /// Adds delegates, and replays the kept invocations to them. Returns the same result as `add`.
  func addAndReplay(_ new: inout NewDelegates) throws(Status) -> Bool {
    guard let (thread, hasEntered) = ThreadRegistry.enterIfNeeded() else { throw .outOfMemory }
    defer { ThreadRegistry.leaveIfEnding(thread, hasEntered) }
    guard thread.hasRoom else { throw .limit }
    let run = try Replay.Run(Int(new.count), self, on: thread)
    let tokens = new.tokens
    new.tokens = tokens ?? run.tokens
    new.replay = run
    defer {
      new.tokens = tokens
      run.deallocate()
    }
    let isAdded = try add(&new)
    if isAdded {
      _ = withList(on: thread) { _, frame, mode in run.run(in: frame, mode) }
      invokeDeferred(on: thread)
    }
    return isAdded
  }

  /// Begins the replay for delegates that have just been added. The caller holds the stripe's lock.
  func begin(_ run: Replay.Run, _ new: NewDelegates) {
    if let tokens = new.tokens {
      shims_copy(run.tokens, tokens, Int(new.count) &* MemoryLayout<multicast_token>.stride)
    }
    replay.begin(run.storage)
  }
}

extension Replay.Run {
  /// Replays every kept invocation to the delegates. Returns the number of calls.
  func run(in frame: Frame, _ mode: Multicast.Mode) -> Int64 {
    let multicast = storage.pointee.multicast
    var (called, hasLive): (Int64, Bool) = (0, true)
    while let kept = multicast.advance(self, goesOn: hasLive) {
      kept.payload?.pass(to: frame)
      var dispatch = Dispatch(InvocationOptions(kept.invocation))
      hasLive = withUnsafeMutablePointer(to: &dispatch) { dispatch in
        AnyCall.with(AnyCall.Details(kept.invocation, dispatch)) { call in
          self.call(call, in: frame, mode, &called)
        }
      }
      Payload.release(of: frame)
    }
    return called
  }

  /// - Returns: whether at least one of the delegates is still registered.
  private func call(
    _ call: AnyCall, in frame: Frame, _ mode: Multicast.Mode, _ called: inout Int64
  ) -> Bool {
    var hasLive = false
    var walk = Walk(in: frame, mode)
    for index in 0..<storage.pointee.count {
      let token = Token(tokens[index].id)
      let registration = Registration(index: token.index)
      if !registration.id.isLive(as: token) { continue }
      hasLive = true
      let entry = InvocationList.Entry(slot: registration.storage, token: token)
      if walk.step(call, entry).isCalled { called &+= 1 }
    }
    walk.finish(call)
    return hasLive
  }
}
