import MulticastShims
import Synchronization

/// Verifies invariants of the library. If an invariant is violated, the library prints a line that
/// states the invariant, and aborts the process.
struct Check {
  /// The place in the source code that has changed something and then called the check.
  let file: StaticString
  let line: UInt

  init(_ file: StaticString, _ line: UInt) {
    self.file = file
    self.line = line
  }

  #if MULTICAST_INTERNAL_CHECKS
    /// - Parameter what: The invariant, as a sentence. The message also contains `value` and
    ///   `other`.
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

    /// Returns the number of elements to check this time: eight in half of all calls, sixteen in a
    /// quarter of them, and so on. Every structure is therefore checked completely sooner or later,
    /// and the mean cost of a check grows with the logarithm of the structure's size.
    static func reach() -> UInt32 {
      // Hash the count. Otherwise a structure that happens to be checked by every eighth call might
      // never be checked completely.
      let turn = count.wrappingAdd(1, ordering: .relaxed).newValue &* 0x9E37_79B9
      return smallestReach << min(UInt32(turn.leadingZeroBitCount), 20)
    }

    /// Follows the links of a list, but checks at most `reach` elements.
    ///
    /// - Parameters:
    ///   - first: The index of the first element plus 1; 0 if the list is empty.
    ///   - next: Checks the element at an index, and returns its link to the next element.
    func walk(_ first: UInt32, _ next: (_ index: UInt32) -> UInt32) {
      let reach = Self.reach()
      var (link, landmark, steps) = (first, UInt32(0), UInt32(0))
      while link != 0 && steps < reach {
        that(link != landmark, "a list has an end", UInt64(link &- 1))
        steps &+= 1
        // Move the landmark when the number of steps is a power of two, so that a walk around a
        // cycle of any length eventually returns to the landmark.
        if steps & (steps &- 1) == 0 { landmark = link }
        link = next(link &- 1)
      }
    }
  #endif
}

/// A type with invariants, which hold whenever no thread is changing the value.
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

/// Wraps calls to the caller's functions, and checks that these functions do nothing forbidden.
///
/// The checks cannot detect an action that leaves no trace:
/// - a signal handler that interrupts the library while it holds no lock,
/// - a cancellation while the library holds no lock,
/// - a longjmp out of a delegate, if the thread later uses the library only from deeper in its
///   stack, or not at all.
enum CallerCode {
  /// Wraps each call to an allocator's function, which must not call the library.
  static func allocating<Result>(_ body: () -> Result) -> Result {
    #if MULTICAST_INTERNAL_CHECKS
      shims_checks_set_allocations(shims_checks_get_allocations() &+ 1)
      defer { shims_checks_set_allocations(shims_checks_get_allocations() &- 1) }
    #endif
    return body()
  }

  /// Wraps each call to a release function. A release function that runs inside another release
  /// function must be deeper in the stack.
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

  /// Called when a thread ends.
  static func checkNoReleaseRuns() {
    #if MULTICAST_INTERNAL_CHECKS
      Check(#fileID, #line).that(shims_get_release_depth() == 0, "no thread ends inside a release")
    #endif
  }

  /// Records the current process, when the library starts and in the child of a `fork`.
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
