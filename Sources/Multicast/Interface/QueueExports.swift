import MulticastHeader

@_cdecl("multicast_queue_create") @implementation
public func multicast_queue_create(
  _ options: UnsafePointer<multicast_queue_options>?
) -> multicast_queue {
  multicast_queue(id: creating { () throws(Status) in try Queue.create(options) })
}

@_cdecl("multicast_queue_destroy") @implementation
public func multicast_queue_destroy(_ queue: multicast_queue) -> multicast_status {
  Queue.destroy(queue.handle).code
}

@_cdecl("multicast_queue_destroy_within") @implementation
public func multicast_queue_destroy_within(
  _ queue: multicast_queue, _ timeout_ns: UInt64
) -> multicast_status {
  Queue.destroy(queue.handle, .nanoseconds(timeout_ns)).code
}

@_cdecl("multicast_queue_is_valid") @implementation
public func multicast_queue_is_valid(_ queue: multicast_queue) -> Bool {
  Queue.isValid(queue.handle)
}

@_cdecl("multicast_queue_clear") @implementation
public func multicast_queue_clear(_ queue: multicast_queue) -> Int64 {
  counting { () throws(Status) in try Queue.clear(queue.handle) }
}

@_cdecl("multicast_queue_run") @implementation
@_optimize(speed)
public func multicast_queue_run(_ queue: multicast_queue, _ max: Int) -> Int64 {
  Queue.run(queue.handle, limit: UInt(bitPattern: max))
}

@_cdecl("multicast_queue_wait") @implementation
public func multicast_queue_wait(_ queue: multicast_queue, _ timeout_ns: UInt64) -> Int64 {
  counting { () throws(Status) in try Queue.wait(queue.handle, .nanoseconds(timeout_ns)) }
}

@_cdecl("multicast_queue_fd") @implementation
public func multicast_queue_fd(_ queue: multicast_queue) -> Int32 {
  Queue.descriptor(queue.handle)
}

@_cdecl("multicast_queue_start") @implementation
public func multicast_queue_start(_ queue: multicast_queue) -> multicast_status {
  code { () throws(Status) in try Queue.start(queue.handle) }
}

@_cdecl("multicast_queue_stop") @implementation
public func multicast_queue_stop(_ queue: multicast_queue) -> multicast_status {
  code { () throws(Status) in try Queue.stop(queue.handle) }
}

@_cdecl("multicast_queue_get_stats") @implementation
public func multicast_queue_get_stats(
  _ queue: multicast_queue, _ out: UnsafeMutablePointer<multicast_queue_stats>?
) -> multicast_status {
  code { () throws(Status) in try Queue.read(queue.handle, into: out) }
}
