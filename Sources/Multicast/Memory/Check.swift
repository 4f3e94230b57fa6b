import MulticastShims
import Synchronization

/// Verifies invariants of the library. If one does not hold, the process ends with a line that
/// names it. The checks exist only in builds with `MULTICAST_INTERNAL_CHECKS`; in all other builds
/// the functions that contain them are empty.
struct Check {
  /// The place in the source from which the check is made: just after a change.
  let file: StaticString
  let line: UInt

  init(_ file: StaticString, _ line: UInt) {
    self.file = file
    self.line = line
  }

  #if MULTICAST_INTERNAL_CHECKS
    /// - Parameter what: The invariant, as a sentence, with its values.
    func that(
      _ isSo: Bool, _ what: StaticString, _ value: some BinaryInteger = UInt64.max,
      _ other: some BinaryInteger = UInt64.max,
      _ checkFile: StaticString = #fileID, _ checkLine: UInt = #line
    ) {
      if isSo { return }
      shims_checks_fail(
        checkFile.utf8Start, Int(checkLine), what.utf8Start, UInt64(truncatingIfNeeded: value),
        UInt64(truncatingIfNeeded: other), file.utf8Start, Int(line))
    }

    private static let count = Atomic<UInt32>(0)
    private static let smallestReach: UInt32 = 8

    /// Returns how many elements of a structure to look at this time: eight in half of the calls,
    /// twice as many in a quarter of them, and so on. Every structure is checked completely sooner
    /// or later, and the mean cost of a check rises with the logarithm of the structure's size.
    static func reach() -> UInt32 {
      // The count is hashed. Otherwise a structure that is checked every eighth time would always,
      // or never, be checked to the end.
      let turn = count.wrappingAdd(1, ordering: .relaxed).newValue &* 0x9E37_79B9
      return smallestReach << min(UInt32(turn.leadingZeroBitCount), 20)
    }

    /// Follows links up to the end, but no farther than `reach`.
    ///
    /// - Parameters:
    ///   - first: Index + 1 of the first element; 0 means the end.
    ///   - next: Checks the element at an index, and returns its link.
    func walk(_ first: UInt32, _ next: (_ index: UInt32) -> UInt32) {
      let reach = Self.reach()
      var (link, landmark, steps) = (first, UInt32(0), UInt32(0))
      while link != 0 && steps < reach {
        that(link != landmark, "a list has an end", UInt64(link &- 1))
        steps &+= 1
        // The landmark moves at powers of two, so that every cycle leads back to a landmark.
        if steps & (steps &- 1) == 0 { landmark = link }
        link = next(link &- 1)
      }
    }
  #endif
}

/// A type with invariants, which hold between any two changes of a value.
protocol Checked {
  #if MULTICAST_INTERNAL_CHECKS
    func check(_ check: Check)
  #endif
}

extension Checked {
  func checkInvariants(_ file: StaticString = #fileID, _ line: UInt = #line) {
    #if MULTICAST_INTERNAL_CHECKS
      check(Check(file, line))
    #endif
  }
}

/// Surrounds the caller's functions with checks for actions that are forbidden there.
///
/// The checks cannot find actions that leave no trace: a signal handler that interrupts the library
/// while no lock is held; a longjmp out of a delegate whose thread never uses the library again, or
/// uses it only deeper on its stack; a cancellation while no lock is held.
enum CallerCode {
  /// Surrounds each call of an allocator's function, which must not call the library.
  static func allocating<Result>(_ body: () -> Result) -> Result {
    #if MULTICAST_INTERNAL_CHECKS
      shims_checks_set_allocations(shims_checks_get_allocations() &+ 1)
      defer { shims_checks_set_allocations(shims_checks_get_allocations() &- 1) }
    #endif
    return body()
  }

  /// Surrounds each call of a release function. Whatever that function calls is deeper on the
  /// stack.
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

  /// Called at the end of a thread.
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
