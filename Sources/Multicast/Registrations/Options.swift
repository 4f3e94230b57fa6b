import MulticastHeader
import MulticastShims

/// The options of an add: a caller's `multicast_add_options`, already checked.
struct Options {
  /// The caller's options, or all zeros if the caller passed none. An empty label is replaced with
  /// nil.
  var given = multicast_add_options()
  /// The queue for calls to the delegate; nil unless the caller passed an existing queue's handle.
  var destination: Destination? = nil
  /// The multicast's release function, for a delegate without its own. If the add fails, the
  /// function is not called.
  var sharedRelease: RegistrationDetails.Release? = nil
  /// Whether the multicast has a function that must be notified when the delegate is removed.
  var isObserved = false
  /// Whether the multicast replays invocations to the delegate.
  var isReplayed = false
  /// Whether the multicast's functions lock and unlock the context.
  var sharesLock = false

  /// - Returns: nil if the caller's struct has unknown fields or flags. Such a struct's fields must
  ///   not be read.
  init?(_ given: UnsafePointer<multicast_add_options>?) {
    guard let given else { return }
    let flags = MULTICAST_ONCE | MULTICAST_UNIQUE | MULTICAST_LATEST | MULTICAST_NO_REPLAY
    guard StructSize.read(given, smallest: StructSize.options, into: &self.given),
      self.given.flags & ~flags == 0, self.given.reserved == 0
    else { return nil }
    if self.given.label?.pointee == 0 { self.given.label = nil }
  }

  var lifetime: Handle { Handle(given.lifetime.id) }
  var queue: Handle { Handle(given.queue.id) }
  var isOnce: Bool { given.flags & MULTICAST_ONCE != 0 }
  var isUnique: Bool { given.flags & MULTICAST_UNIQUE != 0 }

  /// Whether the delegate wants only some events. A mask of 0 means all events.
  var isFiltered: Bool { given.events != 0 && given.events != .max }

  /// The function to call when the library no longer uses the context.
  var finalRelease: RegistrationDetails.Release? { given.release ?? sharedRelease }

  /// Whether the options contain functions that lock and unlock the context.
  var isWeak: Bool { given.lock != nil }

  /// Whether a caller's options can be read and contain nothing except, perhaps, a release
  /// function.
  static func isPlain(_ given: UnsafePointer<multicast_add_options>) -> Bool {
    // Check the size first, because a caller's struct may be smaller and must not be read beyond
    // its end.
    guard given.pointee.struct_size == MemoryLayout<multicast_add_options>.size else {
      return false
    }
    let options = given.pointee
    return options.flags | UInt32(bitPattern: options.priority) | options.reserved == 0
      && options.events | options.lifetime.id | options.queue.id == 0
      && options.lock == nil && options.unlock == nil && options.label == nil
  }

  /// Whether the delegate needs details, because its slot and its list entry cannot store all its
  /// options.
  var needsDetails: Bool {
    given.events != 0 || given.priority != 0 || !lifetime.isNone || isWeak || !queue.isNone
      || given.flags & MULTICAST_LATEST != 0 || isObserved || isReplayed || given.label != nil
  }

  /// Whether the caller passed the handle of a queue that does not exist.
  var hasInvalidQueue: Bool { !queue.isNone && destination == nil }

  /// Whether the options can be read but contradict each other.
  var isContradictory: Bool { (given.lock == nil) != (given.unlock == nil) }
}

/// The queue that a registration delivers to.
struct Destination {
  /// The queue's slot.
  let queue: UnsafeMutableRawPointer
  let recipients: Handle
}
