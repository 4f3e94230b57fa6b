import MulticastShims
import Synchronization

/// Verifies an invariant of the library. If the invariant does not hold, the process ends with a
/// line that names it. Only builds with `MULTICAST_INTERNAL_CHECKS` have the checks. In all other
/// builds the functions of the checks are called, and are empty.
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

    /// How many elements of a structure to look at this time: some each time, twice as many every
    /// second time, and so on. Sooner or later all of a structure is checked, and the mean cost of
    /// a check rises with the logarithm of its size.
    static func reach() -> UInt32 {
      // Hashed: a structure that is checked every eighth time would else always, or never, have a
      // long reach.
      let turn = count.wrappingAdd(1, ordering: .relaxed).newValue &* 0x9E37_79B9
      return smallestReach << min(UInt32(turn.leadingZeroBitCount), 20)
    }

    /// Follows links to the end, or as far as it reaches.
    ///
    /// - Parameters:
    ///   - first: Index + 1 of the first element; 0 is the end.
    ///   - next: Checks the element at an index, and returns its link.
    func walk(_ first: UInt32, _ next: (_ index: UInt32) -> UInt32) {
      let reach = Self.reach()
      var (link, landmark, steps) = (first, UInt32(0), UInt32(0))
      while link != 0 && steps < reach {
        that(link != landmark, "a list has an end", UInt64(link &- 1))
        steps &+= 1
        // The landmark moves on at powers of two: any cycle comes back to one.
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
