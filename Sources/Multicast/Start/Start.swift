import MulticastShims

/// The start of the library: its first use. The slab lock is held.
enum Start {
  nonisolated(unsafe) private static var isDone = false

  /// Replaces libc's allocator, before anything is allocated.
  static func replaceAllocator(
    _ context: UnsafeMutableRawPointer?, _ allocate: @escaping Allocator.Allocate,
    _ deallocate: @escaping Allocator.Deallocate
  ) -> Status {
    Lock.slabs.lock()
    defer { Lock.slabs.unlock() }
    if isDone { return .state }
    Allocator.replace(context: context, allocate: allocate, deallocate: deallocate)
    return .ok
  }

  /// Called before the first slab is added: nothing can be invoked before.
  static func ensure() -> Bool { isDone || begin() }

  @inline(never)
  private static func begin() -> Bool {
    CallerCode.noteProcess()
    Fence.start()
    guard shims_exit_key_init() else { return false }
    // Again, if there was no memory for it when the library was loaded.
    guard shims_watch_fork() else {
      shims_exit_key_destroy()
      return false
    }
    isDone = true
    return true
  }
}

extension ThreadRegistry {
  /// Gives the calling thread its record before it needs it.
  static func prepare() -> Status {
    Lock.slabs.lock()
    let isStarted = Start.ensure()
    Lock.slabs.unlock()
    guard isStarted, let (thread, hasEntered) = enterIfNeeded() else { return .outOfMemory }
    leaveIfEnding(thread, hasEntered)
    return .ok
  }
}
