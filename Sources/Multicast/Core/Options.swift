import CMulticast

/// How a delegate is to be added: a caller's `multicast_options`, checked.
struct Options {
  var flags: UInt32 = 0
  var priority: Int32 = 0
  var events: UInt64 = 0
  var lifetime: UInt64 = 0
  var queue: UInt64 = 0
  /// Where `queue` leads; found by who knows queues, before the options are used.
  var destination: Destination? = nil
  var release: Extras.Release? = nil
  var lock: Extras.Lock? = nil
  var unlock: Extras.Unlock? = nil

  var isOnce: Bool { flags & MULTICAST_ONCE != 0 }
  var isUnique: Bool { flags & MULTICAST_UNIQUE != 0 }

  /// Whether some events are not wanted; 0 stands for all.
  var isFiltered: Bool { events != 0 && events != .max }

  /// Whether more has to be kept than an entry of the invocation list has room for.
  var needsExtras: Bool {
    release != nil || isFiltered || priority != 0 || lifetime != 0 || isWeak || queue != 0
  }

  /// Whether the context counts references itself.
  var isWeak: Bool { lock != nil }

  /// Whether calls are to wait in a queue that is none.
  var leadsNowhere: Bool { queue != 0 && destination == nil }

  /// Whether the options can be read, but contradict themselves.
  var isContradictory: Bool { (lock == nil) != (unlock == nil) }

  /// - Returns: nil where a field says what this version does not know: then none is to be used.
  init?(_ given: UnsafePointer<multicast_options>?) {
    guard let given else { return }
    guard StructSize.isValid(given, smallest: StructSize.options) else { return nil }
    let options = given.pointee
    guard options.flags & ~(MULTICAST_ONCE | MULTICAST_UNIQUE | MULTICAST_LATEST) == 0,
      options.reserved == 0
    else { return nil }
    flags = options.flags
    priority = options.priority
    events = options.events
    lifetime = options.lifetime.id
    queue = options.queue.id
    release = options.release
    lock = options.lock
    unlock = options.unlock
  }
}
