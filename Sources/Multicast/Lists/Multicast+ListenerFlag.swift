import MulticastShims
import Synchronization

/// The flag of `multicast_listener_flag`, which is not 0 while an invocation may have an effect. It
/// is the link of the slot: the pool uses that only while the slot is vacant.
///
/// Written under the stripe's lock, and only when it changes: it is in the cache line that all
/// invocations read. Relaxed: a thread that knows of an add, since that has returned, knows of the
/// store by the same way. The flag says nothing about other memory.
extension Multicast {
  private static var hasDelegates: UInt32 { 1 }
  /// An invocation without delegates has an effect, too.
  private static var always: UInt32 { 2 }

  /// Clears the flag, which the last occupant or the pool has set.
  ///
  /// Release: a fork in the middle of `VacantSlots.take`. A child that finds the flag of an
  /// occupant finds that the thread has taken the slot.
  static func clearListenerFlag(_ storage: UnsafeMutablePointer<Storage>) {
    storage.pointee.header.link.store(0, ordering: .releasing)  // order: listener_flag
  }

  static func setListenerFlagForever(_ storage: UnsafeMutablePointer<Storage>) {
    storage.pointee.header.link.store(always, ordering: .relaxed)
  }

  /// Delegates were added. The stripe's lock is held.
  @inline(__always)
  func didAdd() {
    if fields.header.link.load(ordering: .relaxed) == 0 {
      fields.header.link.store(Self.hasDelegates, ordering: .relaxed)  //~ listener_flag_not_set
    }
  }

  /// The last delegate was removed. The stripe's lock is held.
  func didRemoveLast() {
    if fields.header.link.load(ordering: .relaxed) == Self.hasDelegates {
      fields.header.link.store(0, ordering: .relaxed)  //~ listener_flag_not_cleared
    }
  }

  /// Readable for ever, as the slot is.
  var listenerFlag: UnsafePointer<UInt32> {
    UnsafeRawPointer(fields.header.link.address).assumingMemoryBound(to: UInt32.self)
  }

  /// That of no multicast: always 0.
  static var noListenerFlag: UnsafePointer<UInt32> {
    shims_get_no_listener_flag().unsafelyUnwrapped
  }

  #if MULTICAST_INTERNAL_CHECKS
    func checkListenerFlag(_ check: Check) {
      let word = fields.header.link.load(ordering: .relaxed)
      check.that(
        word == Self.always || word == ((list?.live ?? 0) > 0 ? Self.hasDelegates : 0),
        "the listener flag tells whether there are delegates", word)
    }
  #endif
}
