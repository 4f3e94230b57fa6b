import MulticastShims
import Synchronization

/// Running functions of the caller's, and checks for forbidden actions of theirs.
///
/// The checks cannot find actions without a trace: a signal handler that interrupts the library
/// while no lock is held; a delegate that is left by longjmp, if its thread does not use the
/// library again, or only deeper on its stack; a cancellation while no lock is held.
enum CallerCode {
  /// Surrounds each call of an allocator's function, which must not call the library.
  static func allocating<Result>(_ body: () -> Result) -> Result {
    #if MULTICAST_INTERNAL_CHECKS
      shims_checks_set_allocations(shims_checks_get_allocations() &+ 1)
      defer { shims_checks_set_allocations(shims_checks_get_allocations() &- 1) }
    #endif
    return body()
  }

  /// Surrounds each release. Functions that the release calls are deeper on the stack.
  static func releasing(_ body: () -> Void) {
    #if MULTICAST_INTERNAL_CHECKS
      Lock.checkNoneIsHeld()
      let (outer, here) = (shims_checks_get_release(), shims_stack_address())
      Check(#fileID, #line).that(
        here < outer, "no release is left by longjmp or by an exception", here, outer)
      shims_checks_set_release(here)
      defer { shims_checks_set_release(outer) }
    #endif
    body()
  }

  /// Called when the thread ends.
  static func checkNoReleaseRuns() {
    #if MULTICAST_INTERNAL_CHECKS
      Check(#fileID, #line).that(shims_get_release_depth() == 0, "no thread ends inside a release")
    #endif
  }

  /// Remembers the process in which the library was started, or its child after `fork`.
  static func noteProcess() {
    #if MULTICAST_INTERNAL_CHECKS
      process.store(shims_get_process(), ordering: .relaxed)
    #endif
  }

  #if MULTICAST_INTERNAL_CHECKS
    private static let process = Atomic<UInt32>(0)

    static func checkIsSupported(_ check: Check) {
      check.that(
        shims_checks_get_allocations() == 0, "an allocator's functions do not call the library")
      let (process, current) = (Self.process.load(ordering: .relaxed), shims_get_process())
      check.that(
        process == 0 || process == current,
        "the child of a vfork, or of a fork without its handlers, does not call the library",
        process, current)
    }
  #endif
}

/// The forks between the process in which the library was started and this one.
enum Fork {
  /// The number of forks. Changed only in the child of a fork, while it has one thread.
  nonisolated(unsafe) private(set) static var generation: UInt32 = 0

  static func didBecomeChild() { generation &+= 1 }
}
