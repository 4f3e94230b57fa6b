import MulticastHeader
import MulticastShims
import Synchronization

extension Broadcaster {
  /// Looks up a name's multicast, which a caller may have destroyed. Returns `.none` if the name
  /// does not exist yet.
  ///
  /// Takes no lock, unless there is no memory for the calling thread's record.
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
    // Invocations and runs always leave one frame unused for a lookup. The lookup does not have to
    // push this frame, because it calls no delegate.
    let frame = thread.top
    frame.publish(target)
    // Pairs with the heavy fence in `destroy`: either `destroy` sees this frame and waits, or this
    // lookup does not find the table.
    Fence.light(asymmetric: Fence.isAsymmetric)
    let multicast = self.multicast(of: name)
    // Check the handle after reading the table, which may belong to a later broadcaster in the
    // slot.
    let isValid = isCurrent
    frame.withdraw()
    guard isValid else { throw .invalidHandle }
    return multicast
  }

  /// The caller has published a frame or holds the names' lock, so the table is not freed during
  /// the lookup.
  @inline(__always)
  private func multicast(of name: Name) -> Handle {
    table?.find(name)?.multicast ?? .none
  }

  /// Creates the name if it does not exist yet. A caller may have destroyed the multicast.
  func findOrMake(_ name: Name) throws(Status) -> Handle {
    var found = try find(name)
    if found.isNone { found = try withLock { () throws(Status) in try make(name) } }
    try observe(found, name)
    return found
  }

  /// Like `findOrMake`, but creates another multicast if a caller has destroyed the old one.
  func findOrMakeCurrent(_ name: Name) throws(Status) -> Multicast {
    let known = try findOrMake(name)
    let multicast = Multicast(slotOf: known).unsafelyUnwrapped
    if multicast.isCurrent { return multicast }
    let next = try replace(multicast, of: name)
    try observe(next, name)
    return Multicast(slotOf: next).unsafelyUnwrapped
  }

  /// Replaces a name's multicast after a caller has destroyed it.
  private func replace(_ old: Multicast, of name: Name) throws(Status) -> Handle {
    // According to the lock order, the stripe's lock is taken before the names' lock.
    old.stripe.lock()
    defer { old.stripe.unlock() }
    return try withLock { () throws(Status) in
      let known = (table?.find(name)).unsafelyUnwrapped
      // Another thread may already have replaced the multicast.
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

  /// Executes `body` under the names' lock, if the broadcaster still exists.
  func withLock<Result>(_ body: () throws(Status) -> Result) throws(Status) -> Result {
    Lock.names.lock()
    defer { Lock.names.unlock() }
    guard isCurrent else { throw .invalidHandle }
    return try body()
  }

  // MARK: - Under the names' lock

  private func make(_ name: Name) throws(Status) -> Handle {
    if let known = table?.find(name) { return known.multicast }
    // Create the multicast after all other steps that may fail, because another thread may guess
    // its handle and use it immediately.
    let table = try tableWithRoom()
    try table.makeRoom(for: name)
    let multicast = try Multicast.create()  //~ name_without_multicast
    // Store the length first, so that a thread that finds the prefix also finds its length.
    if name.isPrefix { setExtra(Extras.prefix(ofLength: name.length &- 1), true) }
    table.add(name, multicast)
    return multicast
  }

  private func tableWithRoom() throws(Status) -> NameTable {
    let current = table
    if let current, !current.isFull { return current }
    // To choose names that collide, an attacker would have to know both the time and the address.
    let seed = shims_now_ns() ^ UInt64(UInt(bitPattern: storage)) << 16
    let larger = try NameTable.allocate(replacing: current, seed: seed)
    setTable(larger)
    return larger
  }
}

extension Broadcaster {
  /// - Parameters:
  ///   - given: The options, or nil if they are invalid.
  ///   - name: The name, or nil if it is invalid.
  static func register(
    _ handle: Handle, _ name: Name?,
    _ observers: UnsafePointer<multicast_delegate>?, _ count: Int,
    _ given: Options?, _ tokens: UnsafeMutablePointer<multicast_token>?
  ) -> Status {
    let broadcaster = Broadcaster(slotOf: handle)
    var options = given
    if let queue = broadcaster?.queue, !queue.isNone, options?.queue.isNone ?? false {
      options?.given.queue.id = queue.rawValue
      options?.destination = Queue.destination(queue)
    }
    return Multicast.add(observers, count, options, tokens) { () throws(Status) in
      guard let broadcaster else { throw .invalidHandle }
      guard let name else { throw .invalidArgument }
      return try broadcaster.findOrMakeCurrent(name)
    }
  }

  static func unregister(
    _ handle: Handle, _ text: UnsafePointer<CChar>?, _ observer: multicast_delegate
  ) throws(Status) -> Status {
    guard let multicast = try find(handle, text) else { return .notFound }
    let status = multicast.removeFirst(observer)
    // A caller may have destroyed the name's multicast.
    return status == .invalidHandle ? .notFound : status
  }

  static func unregisterAll(
    _ handle: Handle, _ text: UnsafePointer<CChar>?, _ selection: Selection = .all
  ) throws(Status) -> Int {
    guard let multicast = try find(handle, text) else { return 0 }
    do throws(Status) { return try multicast.removeAll(selection).counted() } catch {
      if error == .invalidHandle { return 0 }
      throw error
    }
  }

  /// - Returns: the number of observers that were called or queued, or a negative status code.
  @_optimize(speed)
  static func notify(
    _ handle: Handle, _ text: UnsafePointer<CChar>?, _ invocation: Invocation
  ) -> Int64 {
    do throws(Status) {
      guard let broadcaster = Broadcaster(slotOf: handle) else { throw .invalidHandle }
      if _slowPath(broadcaster.extras != 0) {
        var owned: Payload? = nil
        let count = deliver(handle, text, invocation)
        return broadcaster.publish(text, invocation, after: count, &owned)
      }
      guard let name = Name(text) else { throw .invalidArgument }
      guard let multicast = Multicast(slotOf: try broadcaster.find(name)) else { return 0 }
      let count = multicast.invoke(invocation)
      return count == Status.invalidHandle.count ? 0 : count
    } catch {
      return error.count
    }
  }

  /// Like `notify`, but does not publish. If the broadcaster has no extras, `notify` performs the
  /// same steps inline.
  static func deliver(
    _ handle: Handle, _ text: UnsafePointer<CChar>?, _ invocation: Invocation
  ) -> Int64 {
    do throws(Status) {
      guard let broadcaster = Broadcaster(slotOf: handle) else { throw .invalidHandle }
      guard let name = Name(text) else { throw .invalidArgument }
      var count: Int64 = 0
      if let multicast = Multicast(slotOf: try broadcaster.find(name)) {
        count = multicast.invokeOutlined(invocation)
        // A caller may have destroyed the name's multicast.
        if count == Status.invalidHandle.count { count = 0 }
      }
      if _slowPath(broadcaster.hasPrefixes) {
        return broadcaster.deliverToPrefixes(text, invocation, after: count)
      }
      return count
    } catch {
      return error.count
    }
  }

  static func multicast(
    _ handle: Handle, _ text: UnsafePointer<CChar>?
  ) throws(Status) -> Handle {
    guard let broadcaster = Broadcaster(slotOf: handle) else { throw .invalidHandle }
    guard let name = Name(text) else { throw .invalidArgument }
    return try broadcaster.findOrMake(name)
  }

  @inline(__always)
  static func find(
    _ handle: Handle, _ text: UnsafePointer<CChar>?
  ) throws(Status) -> Multicast? {
    guard let broadcaster = Broadcaster(slotOf: handle) else { throw .invalidHandle }
    guard let name = Name(text) else { throw .invalidArgument }
    return Multicast(slotOf: try broadcaster.find(name))
  }
}
