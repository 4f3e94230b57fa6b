import MulticastShims
import Synchronization

extension Broadcaster {
  /// The handle of the multicast of a name, which others may have destroyed; nil where there is no
  /// such name yet.
  ///
  /// Takes no lock, but where there is no memory for a record of the calling thread.
  @inline(never)
  func find(_ name: Name) throws(Status) -> UInt64? {
    guard let thread = ThreadRecord.current ?? ThreadRegistry.enter() else {
      return try withLock { () throws(Status) in self.multicast(of: name) }
    }
    defer { ThreadRegistry.leaveIfEnding(thread) }
    thread.checkTop()
    // There is one more than invocations and runs can take. No list is read, no delegate called.
    let frame = thread.storage.pointee.top
    frame.pointee.epoch.store(.max, ordering: .relaxed)
    frame.pointee.multicast.store(address, ordering: .releasing)
    // Pairs with the heavy fence in `destroy`: it sees this frame and waits, or the table is not
    // found here.
    Fence.light(asymmetric: Fence.isAsymmetric)
    let multicast = self.multicast(of: name)
    // After the table was read: it may be that of the slot's next inhabitant.
    let isValid = isCurrent
    // Release: who does not see the frame any more may free the names.
    frame.pointee.multicast.store(0, ordering: .releasing)
    guard isValid else { throw .invalidHandle }
    return multicast
  }

  /// The table is not freed meanwhile: this thread has a frame, or the lock of names.
  @inline(__always)
  private func multicast(of name: Name) -> UInt64? {
    table?.find(name)?.multicast
  }

  /// The handle of the multicast of a name, made where there is no such name yet.
  func findOrMake(_ name: Name) throws(Status) -> UInt64 {
    if let known = try find(name) { return known }
    return try withLock { () throws(Status) in try make(name) }
  }

  /// The multicast of a name, made where there is none or the caller has destroyed it.
  func findOrMakeCurrent(_ name: Name) throws(Status) -> Multicast {
    let known = try findOrMake(name)
    if let multicast = Multicast(slotOf: known), multicast.isCurrent { return multicast }
    let made = try withLock { () throws(Status) in try make(name) }
    return Multicast(slotOf: made).unsafelyUnwrapped
  }

  /// Runs a body under the lock of names, if the broadcaster still exists.
  @inline(__always)
  func withLock<Result>(_ body: () throws(Status) -> Result) throws(Status) -> Result {
    Lock.names.lock()
    defer { Lock.names.unlock() }
    guard isCurrent else { throw .invalidHandle }
    return try body()
  }

  // MARK: - Under the lock of names

  private func make(_ name: Name) throws(Status) -> UInt64 {
    if let known = table?.find(name) {
      if Multicast(slotOf: known.multicast).unsafelyUnwrapped.isCurrent { return known.multicast }
      known.multicast = try Multicast.create()
      return known.multicast
    }
    // The multicast last: nothing can fail once there is one, which others may use by guessing it.
    let table = try tableWithRoom()
    try table.makeRoom(for: name)
    let multicast = try Multicast.create()
    table.add(name, multicast)
    return multicast
  }

  private func tableWithRoom() throws(Status) -> NameTable {
    let current = table
    if let current, !current.isFull { return current }
    // Where things lie, and when, is not known to those who choose names.
    let seed = shims_now_ns() ^ UInt64(UInt(bitPattern: storage)) << 16
    let larger = try NameTable.allocate(replacing: current, seed: seed)
    setTable(larger)
    return larger
  }
}
