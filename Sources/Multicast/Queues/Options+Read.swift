import MulticastHeader

extension Options {
  /// A caller's options, with the queue looked up; nil if they cannot be read.
  static func read(_ given: UnsafePointer<multicast_add_options>?) -> Options? {
    guard var options = Options(given) else { return nil }
    if !options.queue.isNone { options.destination = Queue.destination(options.queue) }
    return options
  }
}
