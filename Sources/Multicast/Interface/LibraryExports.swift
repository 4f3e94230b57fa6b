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
    allocator.pointee.flags == 0, allocator.pointee.allocate != nil,
    allocator.pointee.deallocate != nil
  else { return Status.invalidArgument.code }
  return Start.replaceAllocator(by: allocator.pointee).code
}

@_cdecl("multicast_thread_prepare") @implementation
public func multicast_thread_prepare() -> multicast_status { ThreadRegistry.prepare().code }

@_cdecl("multicast_trim") @implementation
public func multicast_trim() -> Int64 { Int64(Trim.run()) }

@_cdecl("multicast_process_memory") @implementation
public func multicast_process_memory(_ index: UInt32, _ size: Int) -> UnsafeMutableRawPointer? {
  shims_get_process_memory(index, size)
}
