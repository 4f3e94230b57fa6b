import MulticastShims
import Synchronization

/// Functions of the caller's that the library is in the middle of, and what they may not do.
///
/// Not found is what leaves no trace: a signal handler that interrupts a call where no lock is
/// held; a delegate that is left by longjmp on a thread that then does not come back to the
/// library, or deeper on its stack; a cancellation at a moment when no lock is held.
enum CallerCode {
  /// Around each function of an allocator: it must not call the library.
  @inline(__always)
  static func allocating<Result>(_ body: () -> Result) -> Result {
    #if MULTICAST_INTERNAL_CHECKS
      shims_checks_set_allocations(shims_checks_get_allocations() &+ 1)
      defer { shims_checks_set_allocations(shims_checks_get_allocations() &- 1) }
    #endif
    return body()
  }

  /// Around each release: what it calls is deeper on the stack than it is.
  @inline(__always)
  static func releasing(_ body: () -> Void) {
    #if MULTICAST_INTERNAL_CHECKS
      Lock.checkNoneIsHeld()
      let (outer, here) = (shims_checks_get_release(), shims_stack_address())
      Check(#fileID, #line).that(
        here < outer, "no release is left by longjmp or by an exception", UInt64(here),
        UInt64(outer))
      shims_checks_set_release(here)
      defer { shims_checks_set_release(outer) }
    #endif
    body()
  }

  /// The thread ends.
  @inline(__always)
  static func checkNoReleaseRuns() {
    #if MULTICAST_INTERNAL_CHECKS
      Check(#fileID, #line).that(
        shims_get_release_depth() == 0, "no thread ends inside of a release")
    #endif
  }

  /// The process in which the library was started, or that its child has become by `fork`.
  @inline(__always)
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
        UInt64(process), UInt64(current))
    }
  #endif
}
