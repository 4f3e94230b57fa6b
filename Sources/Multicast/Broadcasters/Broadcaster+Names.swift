import MulticastShims
import Synchronization

extension Broadcaster {
  /// The multicast of a name, which the caller may have destroyed; none if there is no such name
  /// yet.
  ///
  /// Takes no lock, unless there is no memory for a record of the calling thread.
  @_optimize(speed)
  func find(_ name: Name) throws(Status) -> Handle {
    if let thread = ThreadRecord.current { return try find(name, on: thread) }
    guard let thread = ThreadRegistry.enter() else {
      return try withLock { () throws(Status) in self.multicast(of: name) }
    }
    defer { ThreadRegistry.leaveIfEnding(thread, true) }
    return try find(name, on: thread)
  }

  @inline(__always)
  @_optimize(speed)
  private func find(_ name: Name, on thread: ThreadRecord) throws(Status) -> Handle {
    thread.checkTop()
    // Invocations and runs leave one frame for a look-up. A look-up calls no delegate, so the frame
    // need not be pushed.
    let frame = thread.top
    frame.publish(target)
    // Pairs with the heavy fence in `destroy`: either `destroy` sees this frame and waits, or this
    // look-up does not find the table.
    Fence.light(asymmetric: Fence.isAsymmetric)
    let multicast = self.multicast(of: name)
    // After the table was read, which may be the next occupant's.
    let isValid = isCurrent
    frame.withdraw()
    guard isValid else { throw .invalidHandle }
    return multicast
  }

  /// The table is not freed meanwhile: this thread has a frame, or the names' lock.
  @inline(__always)
  private func multicast(of name: Name) -> Handle {
    table?.find(name)?.multicast ?? .none
  }

  /// The multicast of a name. Makes one if there is no such name yet.
  func findOrMake(_ name: Name) throws(Status) -> Handle {
    var found = try find(name)
    if found.isNone { found = try withLock { () throws(Status) in try make(name) } }
    try observe(found, name)
    return found
  }

  /// The multicast of a name. Makes one if there is none, or if the caller has destroyed it.
  func findOrMakeCurrent(_ name: Name) throws(Status) -> Multicast {
    let known = try findOrMake(name)
    let multicast = Multicast(slotOf: known).unsafelyUnwrapped
    if multicast.isCurrent { return multicast }
    let next = try replace(multicast, of: name)
    try observe(next, name)
    return Multicast(slotOf: next).unsafelyUnwrapped
  }

  /// Replaces the multicast of a name after a caller has destroyed it.
  private func replace(_ old: Multicast, of name: Name) throws(Status) -> Handle {
    // This lock is taken before the names' lock.
    old.stripe.lock()
    defer { old.stripe.unlock() }
    return try withLock { () throws(Status) in
      let known = (table?.find(name)).unsafelyUnwrapped
      // Another thread may have replaced the multicast.
      if known.multicast == old.handle {
        if let next = old.renew() {
          known.multicast = next
        } else {
          known.multicast = try Multicast.create()
        }
      }
      return known.multicast
    }
  }

  /// Runs a body under the names' lock, if the broadcaster still exists.
  func withLock<Result>(_ body: () throws(Status) -> Result) throws(Status) -> Result {
    Lock.names.lock()
    defer { Lock.names.unlock() }
    guard isCurrent else { throw .invalidHandle }
    return try body()
  }

  // MARK: - Under the names' lock

  private func make(_ name: Name) throws(Status) -> Handle {
    if let known = table?.find(name) { return known.multicast }
    // The multicast last, so that nothing can fail afterwards: another thread may have guessed its
    // handle, and use it.
    let table = try tableWithRoom()
    try table.makeRoom(for: name)
    let multicast = try Multicast.create()  //~ name_without_multicast
    table.add(name, multicast)
    return multicast
  }

  private func tableWithRoom() throws(Status) -> NameTable {
    let current = table
    if let current, !current.isFull { return current }
    // A program that chooses names to collide does not know the time or the address.
    let seed = shims_now_ns() ^ UInt64(UInt(bitPattern: storage)) << 16
    let larger = try NameTable.allocate(replacing: current, seed: seed)
    setTable(larger)
    return larger
  }
}
