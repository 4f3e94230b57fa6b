import Synchronization

extension SlotPool {
  /// Gives a slot to a new occupant. Starts the library if this is its first use.
  ///
  /// - Parameter initialize: Initializes the fields of the slot.
  /// - Returns: the handle of the occupant.
  @inline(__always)
  func create<Storage: ~Copyable>(
    _ kind: Handle.Kind,
    _ initialize: (UnsafeMutablePointer<Storage>, Handle) -> Void
  ) throws(Status) -> Handle {
    guard Start.ensure() else { throw .outOfMemory }
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    let (index, slot) = try take()
    return Self.occupy(index, slot, kind, initialize)
  }

  /// Gives a slot that the caller has taken to a new occupant.
  @inline(__always)
  static func occupy<Storage: ~Copyable>(
    _ index: UInt32, _ slot: UnsafeMutablePointer<SlotHeader>, _ kind: Handle.Kind,
    _ initialize: (UnsafeMutablePointer<Storage>, Handle) -> Void
  ) -> Handle {
    let handle = slot.pointee.id.load(ordering: .relaxed).next(kind, index: index)
    initialize(UnsafeMutableRawPointer(slot).assumingMemoryBound(to: Storage.self), handle)
    // Release: a thread that finds the handle, even by guessing it, finds the fields initialized.
    slot.pointee.id.store(handle, ordering: .releasing)  // order: occupant
    return handle
  }

  private func take() throws(Status) -> (UInt32, UnsafeMutablePointer<SlotHeader>) {
    checkInvariants()
    if let taken = takeVacant() { return taken }
    try grow()
    return takeVacant().unsafelyUnwrapped
  }
}
