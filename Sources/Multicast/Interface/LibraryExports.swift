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
public func multicast_trim() -> Int64 {
  // Treat the number as unsigned, because it may exceed `Int.max` on a 32-bit processor.
  Int64(truncatingIfNeeded: UInt(bitPattern: Trim.run()))
}

@_cdecl("multicast_process_memory") @implementation
public func multicast_process_memory(_ index: UInt32, _ size: Int) -> UnsafeMutableRawPointer? {
  shims_get_process_memory(index, size)
}

@_cdecl("multicast_set_watch") @implementation
public func multicast_set_watch(
  _ target: multicast, _ watch: UnsafePointer<multicast_watch>?
) -> multicast_status {
  code { () throws(Status) in try Watch.set(target.handle, watch) }
}

@_cdecl("multicast_token_get_stats") @implementation
public func multicast_token_get_stats(
  _ token: multicast_token, _ out: UnsafeMutablePointer<multicast_token_stats>?
) -> multicast_status {
  CallStatistics.read(token.handle, into: out).code
}

@_cdecl("multicast_dump") @implementation
public func multicast_dump(
  _ writer: multicast_writer?, _ context: UnsafeMutableRawPointer?
) -> multicast_status {
  writing(writer, context) { text in
    Report.dump(text)
    return .ok
  }
}

@_cdecl("multicast_describe") @implementation
public func multicast_describe(
  _ target: multicast, _ writer: multicast_writer?, _ context: UnsafeMutableRawPointer?
) -> multicast_status {
  guard let target = Multicast(slotOf: target.handle) else { return Status.invalidHandle.code }
  return writing(writer, context) { text in Report.describe(target, text) }
}

/// Writes a text through a line buffer on the stack.
private func writing(
  _ writer: multicast_writer?, _ context: UnsafeMutableRawPointer?, _ make: (Text) -> Status
) -> multicast_status {
  withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Text.lineSize) { line in
    make(Text(writer, context, line: line.baseAddress.unsafelyUnwrapped)).code
  }
}
