import MulticastHeader
import MulticastShims
import Synchronization

/// A broadcaster's transport: the only delegate of a multicast whose handle no caller knows. The
/// multicast's handle identifies the transport.
enum Transport {
  enum Function { case publish, subscribe, unsubscribe }

  /// A call to a transport's function.
  struct Call {
    let function: Function
    /// The name or, for a prefix, its key.
    let name: UnsafePointer<CChar>?
    var invocation = Invocation(event: 0, payload: nil, size: 0)
    var status: multicast_status = 0
  }

  /// Creates a transport from a caller's struct. If this fails although the struct is valid, runs
  /// the release function.
  static func create(_ given: UnsafePointer<multicast_transport>) throws(Status) -> Handle {
    guard StructSize.isValid(given, smallest: StructSize.transport),
      given.pointee.flags & ~MULTICAST_TRANSPORT_PREFIXES == 0
    else { throw .invalidArgument }
    let block: UnsafeMutablePointer<multicast_transport>
    do throws(Status) { block = try Allocator.make(given.pointee) } catch {
      if let release = given.pointee.release { PendingCleanup.run(release, given.pointee.context) }
      throw error
    }
    var handle = Handle.none
    do throws(Status) {
      if given.pointee.publish == nil { throw .invalidArgument }
      // A caller that guesses the handle cannot use it, because no function accepts a handle of
      // this kind.
      handle = try Multicast.create(.transport) { Multicast.initialize($0, $1, 0) }
    } catch {
      PendingCleanup.run(release, block)
      throw error
    }
    var delegate = multicast_delegate(function: call, context: block)
    var options = Options(nil).unsafelyUnwrapped
    options.given.release = release
    var new = NewDelegates(&delegate, count: 1, options, nil)
    do throws(Status) {
      if try find(handle)?.add(&new) ?? false { return handle }
      throw .invalidHandle
    } catch {
      new.abandon()
      _ = detach(handle)
      throw error
    }
  }

  /// Ends a transport, and waits for calls to it, as the removal of a delegate does.
  static func detach(_ handle: Handle, _ timeout: Timeout = .untilExit) -> Status {
    find(handle)?.destroySlowly(timeout).waiting ?? .ok
  }

  private static func find(_ handle: Handle) -> Multicast? {
    Multicast(slotOf: handle, .transport)
  }

  /// - Parameter owned: The payload retained by the call's frame.
  /// - Returns: the function's status, or the reason why it was not called; nil if the transport
  ///   has been detached.
  static func call(_ handle: Handle, _ call: Call, _ owned: inout Payload?) -> multicast_status? {
    guard let multicast = find(handle) else { return nil }
    var call = call
    let count = withUnsafePointer(to: &call) {
      multicast.invoke(Invocation(event: 0, payload: $0, size: 0), keeping: &owned)
    }
    // If no delegate has been called, the transport has been detached.
    if count == Status.invalidHandle.count || count == 0 { return nil }
    return count < 0 ? Int32(truncatingIfNeeded: count) : call.status
  }

  /// Whether a registration that this thread is calling belongs to a transport. A transport's
  /// registration is recognized by its release function, which stays in the slot until the call
  /// returns.
  static func isCalled(as token: Token) -> Bool {
    Registration(index: token.index).storage.pointee.word
      == unsafeBitCast(release, to: UnsafeMutableRawPointer.self)
  }

  private static let call: multicast_function = { block, _, payload, _ in
    guard let block, let payload else { return }
    let transport = block.assumingMemoryBound(to: multicast_transport.self).pointee
    let call = UnsafeMutableRawPointer(mutating: payload).assumingMemoryBound(to: Call.self)
    let name = call.pointee.name
    switch call.pointee.function {
    case .publish:
      let invocation = call.pointee.invocation
      call.pointee.status = transport.publish.unsafelyUnwrapped(
        transport.context, name, invocation.event, invocation.payload, invocation.size)
    case .subscribe:
      if isWanted(name, transport), let subscribe = transport.subscribe {
        call.pointee.status = subscribe(transport.context, name)
      }
    case .unsubscribe:
      if isWanted(name, transport) { transport.unsubscribe?(transport.context, name) }
    }
  }

  /// Whether the transport wants notifications about a name. A prefix's key starts with a NUL.
  private static func isWanted(
    _ name: UnsafePointer<CChar>?, _ transport: multicast_transport
  ) -> Bool {
    name?.pointee != 0 || transport.flags & MULTICAST_TRANSPORT_PREFIXES != 0
  }

  private static let release: RegistrationDetails.Release = { block in
    guard let block else { return }
    let transport = block.assumingMemoryBound(to: multicast_transport.self)
    transport.pointee.release?(transport.pointee.context)
    Allocator.free(transport)
  }
}

extension Broadcaster {
  /// The handle of the transport, or `.none`. The caller afterwards checks whether the slot still
  /// contains the broadcaster's handle. Acquire: pairs with the release in `exchangeTransport`.
  private var transport: Handle {
    storage.pointee.transport.load(ordering: .acquiring)  // order: default
  }

  /// The caller holds the names' lock.
  func exchangeTransport(for transport: Handle) -> Handle {
    let old = storage.pointee.transport.load(ordering: .relaxed)
    storage.pointee.transport.store(transport, ordering: .releasing)  // order: default
    setExtra(Extras.transport, !transport.isNone)
    return old
  }

  // MARK: - Attaching

  /// Attaches a new transport, or only detaches the current one if `given` is nil.
  static func attach(
    _ handle: Handle, _ given: UnsafePointer<multicast_transport>?
  ) throws(Status) -> Status {
    var transport = Handle.none
    if let given { transport = try Transport.create(given) }
    var old = Handle.none
    do throws(Status) {
      guard let broadcaster = Broadcaster(slotOf: handle) else { throw .invalidHandle }
      // First perform the steps that can fail.
      if !transport.isNone { try broadcaster.visitNames(isNotifying: false) }
      old = try broadcaster.withLock { () throws(Status) in
        broadcaster.exchangeTransport(for: transport)
      }
      if !transport.isNone {
        // If the broadcaster has been destroyed in the meantime, `destroy` has detached the
        // transport.
        do throws(Status) { try broadcaster.visitNames(isNotifying: true) } catch {}
      }
    } catch {
      _ = Transport.detach(transport)
      throw error
    }
    return Transport.detach(old)  //~ old_transport_not_detached
  }

  /// Visits the multicasts of all names. If `isNotifying` is false, makes these multicasts, and the
  /// multicasts of later names, notify the broadcaster's transport of future changes to their
  /// observers. If `isNotifying` is true, makes these multicasts notify the transport of their
  /// current state.
  private func visitNames(isNotifying: Bool) throws(Status) {
    var table: NameTable? = nil
    var index = 0
    while true {
      var text: UnsafeMutableRawPointer? = nil
      let next = try withLock { () throws(Status) -> Multicast? in
        storage.pointee.isObserved.store(true, ordering: .relaxed)
        // If the table has been replaced by a larger one, the names have moved, so start over.
        if table?.header != self.table?.header { (table, index) = (self.table, 0) }
        guard let name = table?.next(&index) else { return nil }
        let multicast = Multicast(slotOf: name.multicast).unsafelyUnwrapped
        if !isNotifying && !multicast.isObserved { text = try name.name.copy() }
        return multicast
      }
      guard let next else { return }
      if let text { try observe(next, text) }
      if isNotifying { Policies.notify(next) }
    }
  }

  // MARK: - Names

  /// If the broadcaster has or has had a transport, makes a multicast notify the transport of
  /// changes to its observers.
  func observe(_ known: Handle, _ name: Name) throws(Status) {
    guard storage.pointee.isObserved.load(ordering: .relaxed),
      let multicast = Multicast(slotOf: known), multicast.isCurrent, !multicast.isObserved
    else { return }
    try observe(multicast, try name.copy())
  }

  /// - Parameter text: A copy of the name.
  private func observe(
    _ multicast: Multicast, _ text: UnsafeMutableRawPointer
  ) throws(Status) {
    let transport = storage.pointee.transport.address
    var isNew = false
    defer { if !isNew { Self.forget(text) } }
    isNew = try multicast.observe(
      Policies.Notifier(
        function: .subscription(Self.changeSubscription, transport), context: text,
        release: Self.forget))
  }

  private static let changeSubscription: Policies.Subscription = { text, transport, isWanted in
    let name = text.map { UnsafePointer($0.assumingMemoryBound(to: CChar.self)) }
    var owned: Payload? = nil
    return Transport.call(
      Handle(transport.id),
      Transport.Call(function: isWanted ? .subscribe : .unsubscribe, name: name), &owned)
      ?? Status.invalidHandle.rawValue
  }

  private static let forget: RegistrationDetails.Release = { text in
    if let text { Name.deallocate(copy: text) }
  }

  // MARK: - Publishing

  /// Publishes a notification, and returns the result of the whole notification.
  ///
  /// - Parameters:
  ///   - count: The result of notifying the observers in this process.
  ///   - owned: The payload retained by the call.
  func publish(
    _ text: UnsafePointer<CChar>?, _ invocation: Invocation, after count: Int64,
    _ owned: inout Payload?
  ) -> Int64 {
    guard count >= 0 || count == Status.timeout.count else { return count }
    let call = Transport.Call(function: .publish, name: text, invocation: invocation)
    var last = Handle.none
    while true {
      let transport = self.transport
      guard transport != last, isCurrent else { return count }
      if let status = Transport.call(transport, call, &owned) {
        return status < 0 && count >= 0 ? Int64(status) : count
      }
      // The transport has been detached. Another transport may have been attached.
      last = transport
    }
  }
}
