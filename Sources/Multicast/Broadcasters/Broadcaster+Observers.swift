import MulticastHeader

extension Broadcaster {
  /// - Parameter given: nil if they cannot be read.
  static func register(
    _ handle: Handle, _ text: UnsafePointer<CChar>?,
    _ observers: UnsafePointer<multicast_delegate>?, _ count: Int,
    _ given: Options?, _ tokens: UnsafeMutablePointer<multicast_token>?
  ) -> Status {
    let broadcaster = Broadcaster(slotOf: handle)
    var options = given
    if let queue = broadcaster?.queue, !queue.isNone, options?.queue.isNone ?? false {
      options?.given.queue.id = queue.rawValue
      options?.destination = Queue.destination(queue)
    }
    return Multicast.add(observers, count, options, tokens) { () throws(Status) in
      guard let broadcaster else { throw .invalidHandle }
      guard let name = Name(text) else { throw .invalidArgument }
      return try broadcaster.findOrMakeCurrent(name)
    }
  }

  static func unregister(
    _ handle: Handle, _ text: UnsafePointer<CChar>?, _ observer: multicast_delegate
  ) throws(Status) -> Status {
    guard let multicast = try find(handle, text) else { return .notFound }
    let status = multicast.removeFirst(observer)
    // The caller may have destroyed the multicast of the name.
    return status == .invalidHandle ? .notFound : status
  }

  static func unregisterAll(
    _ handle: Handle, _ text: UnsafePointer<CChar>?, _ selection: Selection = .all
  ) throws(Status) -> Int {
    guard let multicast = try find(handle, text) else { return 0 }
    do throws(Status) { return try multicast.removeAll(selection).counted() } catch {
      if error == .invalidHandle { return 0 }
      throw error
    }
  }

  /// - Returns: how many were called or queued, or the number of a status.
  @_optimize(speed)
  static func notify(
    _ handle: Handle, _ text: UnsafePointer<CChar>?, _ invocation: Invocation
  ) -> Int64 {
    do throws(Status) {
      guard let broadcaster = Broadcaster(slotOf: handle) else { throw .invalidHandle }
      if _slowPath(broadcaster.hasTransport) {
        var owned: Payload? = nil
        let count = deliver(handle, text, invocation)
        return publish(handle, text, invocation, after: count, &owned)
      }
      guard let name = Name(text) else { throw .invalidArgument }
      guard let multicast = Multicast(slotOf: try broadcaster.find(name)) else { return 0 }
      let count = multicast.invoke(invocation)
      return count == Status.invalidHandle.count ? 0 : count
    } catch {
      return error.count
    }
  }

  /// The same, but nothing is published. `notify` has this inlined, for broadcasters without a
  /// transport.
  ///
  /// - Returns: how many were called or queued, or the number of a status.
  static func deliver(
    _ handle: Handle, _ text: UnsafePointer<CChar>?, _ invocation: Invocation
  ) -> Int64 {
    do throws(Status) {
      guard let multicast = try find(handle, text) else { return 0 }
      let count = multicast.invokeOutlined(invocation)
      // The caller may have destroyed the multicast of the name.
      return count == Status.invalidHandle.count ? 0 : count
    } catch {
      return error.count
    }
  }

  /// The multicast of a name. Makes one if there is no such name yet.
  static func multicast(
    _ handle: Handle, _ text: UnsafePointer<CChar>?
  ) throws(Status) -> Handle {
    guard let broadcaster = Broadcaster(slotOf: handle) else { throw .invalidHandle }
    guard let name = Name(text) else { throw .invalidArgument }
    return try broadcaster.findOrMake(name)
  }

  /// The multicast of a name; nil if there is none.
  @inline(__always)
  static func find(
    _ handle: Handle, _ text: UnsafePointer<CChar>?
  ) throws(Status) -> Multicast? {
    guard let broadcaster = Broadcaster(slotOf: handle) else { throw .invalidHandle }
    guard let name = Name(text) else { throw .invalidArgument }
    return Multicast(slotOf: try broadcaster.find(name))
  }
}
