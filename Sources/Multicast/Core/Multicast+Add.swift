import CMulticast

extension Multicast {
  /// Adds a delegate without options where that takes no more than writing it behind the last one,
  /// as it most often does.
  ///
  /// - Returns: false where it takes more, or cannot be: then nothing has happened.
  @inline(__always)
  func append(
    _ delegate: multicast_delegate, _ out: UnsafeMutablePointer<multicast_token>?
  ) -> Bool {
    guard let function = delegate.function else { return false }
    let stripe = self.stripe
    stripe.lock()
    defer { stripe.unlock() }
    guard isCurrent, let list, list.room > 0, list.canAppend(1, priority: 0),
      let registration = Registration.takeVacant(from: stripe, owner: Handle.index(of: handle))
    else { return false }
    let token = registration.activate()
    if let out { out.pointee.id = token }  // before it can be called
    list.write(
      InvocationList.NewEntry(
        function: function, context: delegate.context, registration: registration, token: token,
        state: 0), ahead: 0)
    list.publish(1, priority: 0)
    checkInvariants()
    return true
  }

  /// Adds what a caller gave, or lets go of it.
  ///
  /// - Parameters:
  ///   - options: nil where they cannot be read: then nothing in them is used, the release neither.
  ///   - findTarget: Called once the rest is known to be valid; and again where what it found was
  ///     destroyed before anything could be added.
  @inline(__always)
  static func add(
    _ delegates: UnsafePointer<multicast_delegate>?, _ count: Int, _ options: Options?,
    _ tokens: UnsafeMutablePointer<multicast_token>?,
    to findTarget: () throws(Status) -> Multicast
  ) -> Status {
    guard count >= 0 && count <= NewDelegates.limit else { return .limit }
    let number = UInt32(truncatingIfNeeded: count)
    guard let delegates, let options else {
      if count == 0, let options {
        if options.isContradictory { return .invalidArgument }
        guard leadsSomewhere(options) else { return .invalidHandle }
        do throws(Status) { _ = try findTarget() } catch { return error }
        return .ok
      }
      NewDelegates.clear(tokens, number)
      return .invalidArgument
    }
    var new = NewDelegates(delegates, count: number, options, tokens)
    do throws(Status) {
      guard new.areValid else { throw .invalidArgument }
      guard leadsSomewhere(options) else { throw .invalidHandle }
      try new.allocateExtras()
      while !(try findTarget().add(&new)) {}
      return .ok
    } catch {
      new.abandon()
      return error
    }
  }

  private static func leadsSomewhere(_ options: Options) -> Bool {
    !options.leadsNowhere && Lifetime.mayBeJoined(options.lifetime)
  }

  /// Adds delegates in order: all of them, or none.
  ///
  /// - Returns: false where the multicast has been destroyed; nothing has happened then.
  /// - Complexity: O(1) amortized; O(n) to insert by priority, and to look for equal ones.
  private func add(_ new: inout NewDelegates) throws(Status) -> Bool {
    if new.count == 0 { return isCurrent }
    var cleanup = Cleanup()
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
        let spare = try makeRoom(for: new.count, new.options.priority, cleanup.thread)
        do throws(Status) {
          try Lifetime.join(registrations, new.options)
        } catch {
          spare?.deallocate()
          throw error
        }
        insert(new, &registrations, spare, &cleanup)  // nothing can fail from here on
        checkInvariants()
      } catch {
        while let registration = registrations.pop() {
          if let extras = registration.giveBack(to: stripe) { Extras.deallocate(extras) }
        }
        throw error
      }
    } catch {
      stripe.unlock()
      throw error
    }
    stripe.unlock()
    // What was replaced as not unique may still be called; its release tells.
    _ = cleanup.finish(self, patience: .none)
    return true
  }

  /// Takes a registration for each of the delegates, with its extras.
  private func take(
    _ new: inout NewDelegates, _ registrations: inout RegistrationChain, from stripe: Stripe
  ) throws(Status) {
    var taken: UInt32 = 0
    while taken < new.count {
      registrations.push(try Registration.take(from: stripe, owner: Handle.index(of: handle)))
      taken &+= 1
    }
    // In the order in which they are going to be used, which is not that of their taking.
    for registration in registrations {
      guard let extras = new.takeExtras() else { return }
      extras.pointee.multicast = handle
      registration.storage.pointee.extras = extras
    }
  }

  /// Sees to it that so many can be added.
  ///
  /// - Returns: nil where they fit behind the current list's last entry; otherwise an empty list to
  ///   use in its place.
  private func makeRoom(
    for count: UInt32, _ priority: Int32, _ thread: ThreadRecord?
  ) throws(Status) -> InvocationList? {
    var needed = count
    if let list {
      if list.canAppend(count, priority: priority) {
        if list.room >= count { return nil }
        if list.dead >= list.live / 4 &+ count && isQuiet(thread) {
          list.compactInPlace()
          return nil
        }
      }
      // With dead ones among them a quarter more than is live: else one that comes and goes in a
      // list that is almost full would have it copied each time.
      needed &+= list.live &+ (list.dead > 0 ? list.live / 4 : 0)
    }
    guard
      let spare = InvocationList.allocate(
        capacity: InvocationList.capacity(for: needed), owner: handle)
    else { throw .outOfMemory }
    return spare
  }

  private func insert(
    _ new: NewDelegates, _ registrations: inout RegistrationChain,
    _ spare: InvocationList?, _ cleanup: inout Cleanup
  ) {
    if new.options.isUnique { removeEqual(to: new, &cleanup) }
    let priority = new.options.priority
    let target = spare ?? list.unsafelyUnwrapped
    var rest: UInt32 = 0
    if let spare, let list { rest = list.copyLive(to: spare, lowest: priority) }

    var index: UInt32 = 0
    var added: UInt32 = 0
    while let registration = registrations.pop() {
      let token = registration.activate()
      new.tokens?[Int(index)] = multicast_token(id: token)
      if new.isReplaced(index) {
        registration.retire()
        leave(registration, token, &cleanup)
      } else {
        let delegate = new[index]
        target.write(
          InvocationList.NewEntry(
            function: delegate.function.unsafelyUnwrapped, context: delegate.context,
            registration: registration, token: token, state: new.state), ahead: added)
        added &+= 1
      }
      index &+= 1
    }
    target.publish(added, priority: priority)

    guard let spare else { return }
    if let list, !list.canAppend(new.count, priority: priority) {
      _ = list.copyLive(to: spare, from: rest)
      spare.beginEra()
      spare.refreshLastPriority()
    }
    replaceList(by: spare, &cleanup)
  }

  /// Removes what is equal to a delegate that is added as the only one of its kind.
  private func removeEqual(to new: NewDelegates, _ cleanup: inout Cleanup) {
    guard let list else { return }
    var index: UInt32 = 0
    while index < new.count {
      let delegate = new[index]
      var position: UInt32 = 0
      while let found = list.firstPosition(
        from: position, where: { InvocationList.delegate(of: $0) == delegate })
      {
        unlink(found, of: list, &cleanup)
        position = found &+ 1
      }
      index &+= 1
    }
  }
}
