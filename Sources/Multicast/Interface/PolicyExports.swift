import MulticastHeader

@_cdecl("multicast_create_with") @implementation
public func multicast_create_with(
  _ options: UnsafePointer<multicast_create_options>?
) -> multicast {
  multicast(id: creating { () throws(Status) in try Multicast.create(with: options) })
}

@_cdecl("multicast_enumerate") @implementation
public func multicast_enumerate(
  _ target: multicast, _ enumerator: multicast_enumerator?, _ context: UnsafeMutableRawPointer?
) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  guard let enumerator else { return Status.invalidArgument.count }
  return target.enumerate(Enumeration(function: enumerator, context: context))
}

@_cdecl("multicast_visit_undo") @implementation
public func multicast_visit_undo(
  _ target: multicast, _ visitor: multicast_visitor?, _ undo: multicast_visitor?,
  _ context: UnsafeMutableRawPointer?
) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  guard let visitor, let undo else { return Status.invalidArgument.count }
  return target.visit(
    Visit(visitor: visitor, context: context), orUndo: Visit(visitor: undo, context: context))
}

// Operations on a multicast with policies. Not inlined, so that the usual operations, without
// policies, do not become longer.

func invokeGoverned(
  _ event: UInt32, _ payload: UnsafeRawPointer?, _ size: Int, _ target: multicast
) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  let options = InvocationOptions(Invocation(event: event, payload: payload, size: size))
  var (owned, outcome) = (Payload?.none, Dispatch.Outcome())
  return target.invokeGoverned(options, &owned, &outcome)
}

func visitGoverned(
  _ target: multicast, _ visitor: multicast_visitor?, _ context: UnsafeMutableRawPointer?
) -> Int64 {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.count }
  guard let visitor else { return Status.invalidArgument.count }
  return target.visit(Visit(visitor: visitor, context: context), orUndo: nil)
}

func destroyGoverned(_ target: multicast, _ timeout: Timeout = .unlimited) -> multicast_status {
  code { () throws(Status) in try slot(of: target).destroySlowly(timeout).status }
}
