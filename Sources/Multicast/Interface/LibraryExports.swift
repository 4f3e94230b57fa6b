import MulticastHeader
import MulticastShims

@c @implementation public func multicast_version() -> UInt32 {
  UInt32(MULTICAST_VERSION_MAJOR) << 16 | UInt32(MULTICAST_VERSION_MINOR) << 8
    | UInt32(MULTICAST_VERSION_PATCH)
}

@c @implementation public func multicast_status_name(_ status: Int64) -> UnsafePointer<CChar>? {
  shims_status_name(status)
}

@c @implementation public func multicast_status_message(_ status: Int64) -> UnsafePointer<CChar>? {
  shims_status_message(status)
}

@c @implementation public func multicast_set_allocator(
  _ allocator: UnsafePointer<multicast_allocator>?
) -> multicast_status {
  guard let allocator, StructSize.isValid(allocator, smallest: StructSize.allocator),
    allocator.pointee.flags == 0, allocator.pointee.allocate != nil,
    allocator.pointee.deallocate != nil
  else { return Status.invalidArgument.code }
  return Start.replaceAllocator(by: allocator.pointee).code
}

@c @implementation
public func multicast_thread_prepare() -> multicast_status { ThreadRegistry.prepare().code }

@c @implementation public func multicast_trim() -> Int64 { Int64(Trim.run()) }
