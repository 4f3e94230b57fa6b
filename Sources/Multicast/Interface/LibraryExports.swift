import MulticastHeader
import MulticastShims

@_cdecl("multicast_version") @implementation
public func multicast_version() -> UInt32 {
  UInt32(MULTICAST_VERSION_MAJOR) << 16 | UInt32(MULTICAST_VERSION_MINOR) << 8
    | UInt32(MULTICAST_VERSION_PATCH)
}

@_cdecl("multicast_status_name") @implementation
public func multicast_status_name(_ status: Int64) -> UnsafePointer<CChar>? {
  shims_status_name(status)
}

@_cdecl("multicast_status_message") @implementation
public func multicast_status_message(_ status: Int64) -> UnsafePointer<CChar>? {
  shims_status_message(status)
}

@_cdecl("multicast_set_allocator") @implementation
public func multicast_set_allocator(
  _ allocator: UnsafePointer<multicast_allocator>?
) -> multicast_status {
  guard let allocator, StructSize.isValid(allocator, smallest: StructSize.allocator),
    allocator.pointee.flags == 0, let allocate = allocator.pointee.allocate,
    let deallocate = allocator.pointee.deallocate
  else { return Status.invalidArgument.code }
  return Process.replaceAllocator(allocator.pointee.context, allocate, deallocate).code
}

@_cdecl("multicast_trim") @implementation
public func multicast_trim() -> Int64 { Int64(Trim.run()) }

@_cdecl("multicast_add_options_init") @implementation
public func multicast_add_options_init(
  _ options: UnsafeMutablePointer<multicast_add_options>?, _ size: Int
) -> multicast_status {
  StructSize.initialize(options, size, smallest: StructSize.options).code
}

@_cdecl("multicast_queue_options_init") @implementation
public func multicast_queue_options_init(
  _ options: UnsafeMutablePointer<multicast_queue_options>?, _ size: Int
) -> multicast_status {
  StructSize.initialize(options, size, smallest: StructSize.queueOptions).code
}

@_cdecl("multicast_queue_stats_init") @implementation
public func multicast_queue_stats_init(
  _ stats: UnsafeMutablePointer<multicast_queue_stats>?, _ size: Int
) -> multicast_status {
  StructSize.initialize(stats, size, smallest: StructSize.queueStats).code
}

@_cdecl("multicast_broadcaster_options_init") @implementation
public func multicast_broadcaster_options_init(
  _ options: UnsafeMutablePointer<multicast_broadcaster_options>?, _ size: Int
) -> multicast_status {
  StructSize.initialize(options, size, smallest: StructSize.broadcasterOptions).code
}

@_cdecl("multicast_allocator_init") @implementation
public func multicast_allocator_init(
  _ allocator: UnsafeMutablePointer<multicast_allocator>?, _ size: Int
) -> multicast_status {
  StructSize.initialize(allocator, size, smallest: StructSize.allocator).code
}

@_cdecl("multicast_registration_init") @implementation
public func multicast_registration_init(
  _ registration: UnsafeMutablePointer<multicast_registration>?, _ size: Int
) -> multicast_status {
  StructSize.initialize(registration, size, smallest: StructSize.registration).code
}

@_cdecl("multicast_invocation_init") @implementation
public func multicast_invocation_init(
  _ invocation: UnsafeMutablePointer<multicast_invocation>?, _ size: Int
) -> multicast_status {
  StructSize.initialize(invocation, size, smallest: StructSize.invocation).code
}

@_cdecl("multicast_create_options_init") @implementation
public func multicast_create_options_init(
  _ options: UnsafeMutablePointer<multicast_create_options>?, _ size: Int
) -> multicast_status {
  StructSize.initialize(options, size, smallest: StructSize.createOptions).code
}

@_cdecl("multicast_transport_init") @implementation
public func multicast_transport_init(
  _ transport: UnsafeMutablePointer<multicast_transport>?, _ size: Int
) -> multicast_status {
  StructSize.initialize(transport, size, smallest: StructSize.transport).code
}

@_cdecl("multicast_outcome_init") @implementation
public func multicast_outcome_init(
  _ outcome: UnsafeMutablePointer<multicast_outcome>?, _ size: Int
) -> multicast_status {
  StructSize.initialize(outcome, size, smallest: StructSize.outcome).code
}
