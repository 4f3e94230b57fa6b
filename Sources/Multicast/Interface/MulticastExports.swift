import CMulticast

@_cdecl("multicast_create") @implementation
public func multicast_create() -> multicast {
  do throws(Status) { return multicast(id: try Multicast.create().rawValue) } catch {
    return multicast(id: 0)
  }
}

@_cdecl("multicast_destroy") @implementation
public func multicast_destroy(_ target: multicast) -> multicast_status {
  guard let target = Multicast(slotOf: target.handle) else { return MULTICAST_ERROR_INVALID_HANDLE }
  return target.destroy().status.code
}

@_cdecl("multicast_is_valid") @implementation
public func multicast_is_valid(_ target: multicast) -> Bool {
  Multicast(slotOf: target.handle)?.isCurrent ?? false
}

// MARK: - Adding

@_cdecl("multicast_add") @implementation
public func multicast_add(
  _ target: multicast, _ delegate: multicast_delegate,
  _ options: UnsafePointer<multicast_options>?, _ out: UnsafeMutablePointer<multicast_token>?
) -> multicast_status {
  if options == nil, Multicast(slotOf: target.handle)?.append(delegate, out) ?? false {
    return MULTICAST_OK
  }
  var delegate = delegate
  return Multicast.add(&delegate, 1, Options.read(options), out) { () throws(Status) in
    try Multicast.find(target.handle)
  }.code
}

@_cdecl("multicast_add_many") @implementation
public func multicast_add_many(
  _ target: multicast, _ delegates: UnsafePointer<multicast_delegate>?, _ count: Int,
  _ options: UnsafePointer<multicast_options>?, _ out: UnsafeMutablePointer<multicast_token>?
) -> multicast_status {
  Multicast.add(delegates, count, Options.read(options), out) { () throws(Status) in
    try Multicast.find(target.handle)
  }.code
}

// MARK: - Removing

@_cdecl("multicast_remove") @implementation
public func multicast_remove(
  _ target: multicast, _ delegate: multicast_delegate
) -> multicast_status {
  guard let target = Multicast(slotOf: target.handle) else { return MULTICAST_ERROR_INVALID_HANDLE }
  return target.removeFirst(.equal(delegate)).code
}

@_cdecl("multicast_remove_many") @implementation
public func multicast_remove_many(
  _ target: multicast, _ delegates: UnsafePointer<multicast_delegate>?, _ count: Int
) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  guard count == 0 || delegates != nil else { return Status.invalidArgument.count }
  return counting { () throws(Status) in try target.removeEach(delegates, count: count) }
}

@_cdecl("multicast_remove_context") @implementation
public func multicast_remove_context(
  _ target: multicast, _ context: UnsafeMutableRawPointer?
) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  return counting { () throws(Status) in try target.removeAll(.context(context)) }
}

@_cdecl("multicast_remove_at") @implementation
public func multicast_remove_at(_ target: multicast, _ index: Int) -> multicast_status {
  guard let target = Multicast(slotOf: target.handle) else { return MULTICAST_ERROR_INVALID_HANDLE }
  return target.remove(at: index).code
}

@_cdecl("multicast_remove_all") @implementation
public func multicast_remove_all(_ target: multicast) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  return counting { () throws(Status) in try target.removeAll(.all) }
}

// MARK: - Asking

@_cdecl("multicast_count") @implementation
public func multicast_count(_ target: multicast) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  return counting { () throws(Status) in try target.count() }
}

@_cdecl("multicast_contains") @implementation
public func multicast_contains(_ target: multicast, _ delegate: multicast_delegate) -> Bool {
  guard let target = Multicast(slotOf: target.handle) else { return false }
  do throws(Status) { return try target.contains(delegate) } catch { return false }
}

@_cdecl("multicast_list") @implementation
public func multicast_list(
  _ target: multicast, _ out: UnsafeMutablePointer<multicast_delegate>?, _ capacity: Int
) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  guard capacity == 0 || out != nil else { return Status.invalidArgument.count }
  return counting { () throws(Status) in try target.list(into: out, capacity: capacity) }
}

// MARK: - Invoking

@_cdecl("multicast_invoke") @implementation
public func multicast_invoke(
  _ target: multicast, _ event: UInt32, _ payload: UnsafeRawPointer?, _ size: Int
) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  if _slowPath(size != 0), payload == nil { return Status.invalidArgument.count }
  return target.invoke(Invocation(event: event, payload: payload, size: size))
}

@_cdecl("multicast_visit") @implementation
public func multicast_visit(
  _ target: multicast, _ visitor: multicast_visitor?, _ context: UnsafeMutableRawPointer?
) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  guard let visitor else { return Status.invalidArgument.count }
  return target.invoke(Visit(visitor: visitor, context: context))
}
