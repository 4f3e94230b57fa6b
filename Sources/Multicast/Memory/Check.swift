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
