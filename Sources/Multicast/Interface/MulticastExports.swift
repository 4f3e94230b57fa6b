import MulticastHeader
import MulticastShims

@_cdecl("multicast_create") @implementation
@_optimize(speed)
public func multicast_create() -> multicast {
  multicast(id: creating { () throws(Status) in try Multicast.create() })
}

@_cdecl("multicast_create_with") @implementation
public func multicast_create_with(
  _ options: UnsafePointer<multicast_create_options>?
) -> multicast {
  multicast(id: creating { () throws(Status) in try Multicast.create(with: options) })
}

@_cdecl("multicast_destroy") @implementation
@_optimize(speed)
public func multicast_destroy(_ target: multicast) -> multicast_status {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.code }
  return target.destroy().status.code
}

@_cdecl("multicast_destroy_within") @implementation
public func multicast_destroy_within(
  _ target: multicast, _ timeout_ns: UInt64
) -> multicast_status {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.code }
  return target.destroyOutlined(.nanoseconds(timeout_ns)).status.code
}

@_cdecl("multicast_create_error") @implementation
public func multicast_create_error() -> multicast_status { shims_get_create_error() }

@_cdecl("multicast_is_valid") @implementation
public func multicast_is_valid(_ target: multicast) -> Bool {
  Multicast(slotOf: target.handle)?.isCurrent ?? false
}

// MARK: - Adding

@_cdecl("multicast_add") @implementation
@_optimize(speed)
public func multicast_add(
  _ target: multicast, _ delegate: multicast_delegate,
  _ options: UnsafePointer<multicast_add_options>?, _ out: UnsafeMutablePointer<multicast_token>?
) -> multicast_status {
  let isPlain = options.map { Options.isPlain($0) } ?? true
  do throws(Status) {
    if isPlain,
      try Multicast(slotOf: target.handle)?.addPlain(delegate, options?.pointee.release, out)
        ?? false
    {
      return Status.ok.code
    }
  } catch {
    NewDelegates.abandon(delegate, options?.pointee.release, out)
    return error.code
  }
  return addSlowly(target, delegate, options, out)
}

// Not inlined, so that the fast path has to save fewer registers.
@inline(never)
private func addSlowly(
  _ target: multicast, _ delegate: multicast_delegate,
  _ options: UnsafePointer<multicast_add_options>?, _ out: UnsafeMutablePointer<multicast_token>?
) -> multicast_status {
  var delegate = delegate
  return add(&delegate, 1, to: target, options, out)
}

private func add(
  _ delegates: UnsafePointer<multicast_delegate>?, _ count: Int, to target: multicast,
  _ given: UnsafePointer<multicast_add_options>?, _ out: UnsafeMutablePointer<multicast_token>?
) -> multicast_status {
  var options = Options.read(given)
  let exists = Multicast(slotOf: target.handle)?.complete(&options) ?? false
  return Multicast.add(delegates, count, options, out) { () throws(Status) in
    guard exists else { throw .invalidHandle }
    return try Multicast.find(target.handle)
  }.code
}

@_cdecl("multicast_add_many") @implementation
public func multicast_add_many(
  _ target: multicast, _ delegates: UnsafePointer<multicast_delegate>?, _ count: Int,
  _ options: UnsafePointer<multicast_add_options>?, _ out: UnsafeMutablePointer<multicast_token>?
) -> multicast_status {
  guard NewDelegates.allows(count) else { return Status.limit.code }
  return add(delegates, count, to: target, options, out)
}

// MARK: - Removing

@_cdecl("multicast_remove") @implementation
public func multicast_remove(
  _ target: multicast, _ delegate: multicast_delegate
) -> multicast_status {
  code { () throws(Status) in try slot(of: target).removeFirst(delegate) }
}

@_cdecl("multicast_remove_every") @implementation
public func multicast_remove_every(
  _ target: multicast, _ delegate: multicast_delegate
) -> multicast_status {
  code { () throws(Status) in try slot(of: target).removeEvery(.equal(delegate)) }
}

@_cdecl("multicast_remove_every_within") @implementation
public func multicast_remove_every_within(
  _ target: multicast, _ delegate: multicast_delegate, _ timeout_ns: UInt64
) -> multicast_status {
  code { () throws(Status) in
    try slot(of: target).removeEvery(.equal(delegate), .nanoseconds(timeout_ns))
  }
}

@_cdecl("multicast_remove_many") @implementation
public func multicast_remove_many(
  _ target: multicast, _ delegates: UnsafePointer<multicast_delegate>?, _ count: Int
) -> Int64 {
  counting { () throws(Status) in
    let target = try slot(of: target)
    guard count == 0 || delegates != nil else { throw .invalidArgument }
    return try target.removeEach(delegates, count: count).counted()
  }
}

@_cdecl("multicast_remove_many_within") @implementation
public func multicast_remove_many_within(
  _ target: multicast, _ delegates: UnsafePointer<multicast_delegate>?, _ count: Int,
  _ timeout_ns: UInt64, _ out: UnsafeMutablePointer<multicast_status>?
) -> Int64 {
  counting(out) { () throws(Status) in
    let target = try slot(of: target)
    guard count == 0 || delegates != nil else { throw .invalidArgument }
    return target.removeEach(delegates, count: count, .nanoseconds(timeout_ns))
  }
}

@_cdecl("multicast_remove_context") @implementation
public func multicast_remove_context(
  _ target: multicast, _ context: UnsafeMutableRawPointer?
) -> Int64 {
  counting { () throws(Status) in try slot(of: target).removeAll(.context(context)).counted() }
}

@_cdecl("multicast_remove_context_within") @implementation
public func multicast_remove_context_within(
  _ target: multicast, _ context: UnsafeMutableRawPointer?, _ timeout_ns: UInt64,
  _ out: UnsafeMutablePointer<multicast_status>?
) -> Int64 {
  counting(out) { () throws(Status) in
    try slot(of: target).removeAll(.context(context), .nanoseconds(timeout_ns))
  }
}

@_cdecl("multicast_remove_at") @implementation
public func multicast_remove_at(_ target: multicast, _ index: Int) -> multicast_status {
  code { () throws(Status) in try slot(of: target).remove(at: index) }
}

@_cdecl("multicast_remove_all") @implementation
public func multicast_remove_all(_ target: multicast) -> Int64 {
  counting { () throws(Status) in try slot(of: target).removeAll(.all).counted() }
}

@_cdecl("multicast_remove_all_within") @implementation
public func multicast_remove_all_within(
  _ target: multicast, _ timeout_ns: UInt64, _ out: UnsafeMutablePointer<multicast_status>?
) -> Int64 {
  counting(out) { () throws(Status) in
    try slot(of: target).removeAll(.all, .nanoseconds(timeout_ns))
  }
}

@_cdecl("multicast_prune") @implementation
public func multicast_prune(_ target: multicast) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  return target.enumerate(nil, nil)
}

// MARK: - Queries

@_cdecl("multicast_count") @implementation
public func multicast_count(_ target: multicast) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  return counting { () throws(Status) in try target.count() }
}

@_cdecl("multicast_contains") @implementation
public func multicast_contains(_ target: multicast, _ delegate: multicast_delegate) -> Bool {
  guard let target = Multicast(slotOf: target.handle) else { return false }
  return (try? target.contains(delegate)) ?? false
}

@_cdecl("multicast_list") @implementation
public func multicast_list(
  _ target: multicast, _ out: UnsafeMutablePointer<multicast_delegate>?, _ capacity: Int
) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  guard capacity == 0 || out != nil else { return Status.invalidArgument.count }
  return counting { () throws(Status) in try target.list(into: out, capacity: capacity) }
}

@_cdecl("multicast_listener_flag") @implementation
public func multicast_listener_flag(_ target: multicast) -> UnsafePointer<UInt32>? {
  guard let target = Multicast(slotOf: target.handle), target.isCurrent else {
    return Multicast.noListenerFlag
  }
  return target.listenerFlag
}

// MARK: - Invoking

@_cdecl("multicast_invoke") @implementation
@_optimize(speed)
public func multicast_invoke(
  _ target: multicast, _ event: UInt32, _ payload: UnsafeRawPointer?, _ size: Int
) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return invalidHandle() }
  if _slowPath(size != 0), payload == nil { return Status.invalidArgument.count }
  // The case of an empty multicast is handled in this function, where no registers have to be saved
  // (see `multicast_invoke_listed`).
  guard let list = target.loadList() else {
    return target.invokeEmpty(Invocation(event: event, payload: payload, size: size))
  }
  return multicast_invoke_listed(target.handle, event, payload, size, target.storage, list)
}

/// The rest of `multicast_invoke`, which tail-calls this function. The first parameters are the
/// same as those of `multicast_invoke`, so they stay in the same registers.
@inline(never) @_optimize(speed)
private func multicast_invoke_listed(
  _ target: Handle, _ event: UInt32, _ payload: UnsafeRawPointer?, _ size: Int,
  _ storage: UnsafeMutablePointer<Multicast.Storage>, _ list: InvocationList.Address
) -> Int64 {
  Multicast(target, at: storage).invoke(
    Invocation(event: event, payload: payload, size: size), reading: list)
}

// Not inlined, because the compiler would otherwise load the constant before it is needed.
@inline(never) @_optimize(none)
private func invalidHandle() -> Int64 { Status.invalidHandle.count }

@_cdecl("multicast_visit") @implementation
public func multicast_visit(
  _ target: multicast, _ visitor: multicast_visitor?, _ context: UnsafeMutableRawPointer?
) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  guard let visitor else { return Status.invalidArgument.count }
  return target.invoke(Visit(visitor: visitor, context: context))
}

@_cdecl("multicast_enumerate") @implementation
public func multicast_enumerate(
  _ target: multicast, _ enumerator: multicast_enumerator?, _ context: UnsafeMutableRawPointer?
) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  guard let enumerator else { return Status.invalidArgument.count }
  return target.enumerate(enumerator, context)
}

@_cdecl("multicast_visit_undo") @implementation
public func multicast_visit_undo(
  _ target: multicast, _ visitor: multicast_visitor?, _ undo: multicast_visitor?,
  _ context: UnsafeMutableRawPointer?
) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  guard let visitor, let undo else { return Status.invalidArgument.count }
  return target.visit(
    Visit(visitor: visitor, context: context),
    orUndo: Visit(visitor: undo, context: context, isUndo: true))
}

@_cdecl("multicast_invoke_with") @implementation
@_optimize(speed)
public func multicast_invoke_with(
  _ target: multicast, _ how: UnsafePointer<multicast_invocation>?,
  _ out: UnsafeMutablePointer<multicast_outcome>?
) -> Int64 {
  InvocationTarget.multicast(target.handle).invoke(how, out)
}

@_cdecl("multicast_broadcaster_notify_with") @implementation
public func multicast_broadcaster_notify_with(
  _ broadcaster: multicast_broadcaster, _ name: UnsafePointer<CChar>?,
  _ how: UnsafePointer<multicast_invocation>?, _ out: UnsafeMutablePointer<multicast_outcome>?
) -> Int64 {
  InvocationTarget.name(name, of: broadcaster.handle).invoke(how, out)
}
