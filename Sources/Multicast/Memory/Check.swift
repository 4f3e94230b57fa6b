import MulticastShims
import Synchronization

/// Whether something of the library's own holds: where it does not, the process ends with a line
/// that says what. The checks are there with `MULTICAST_INTERNAL_CHECKS` alone; the functions that
/// make them are called in every build, and are empty in all others.
struct Check {
  /// Where the caller of the checks was: just after the change.
  let file: StaticString
  let line: UInt

  init(_ file: StaticString, _ line: UInt) {
    self.file = file
    self.line = line
  }

  #if MULTICAST_INTERNAL_CHECKS
    /// - Parameter what: What holds, as a sentence; with the values that show whether it does.
    @inline(__always)
    func that(
      _ isSo: Bool, _ what: StaticString, _ value: UInt64? = nil, _ other: UInt64? = nil,
      _ checkFile: StaticString = #fileID, _ checkLine: UInt = #line
    ) {
      if !isSo { fail(what, value ?? .max, other ?? .max, checkFile, checkLine) }
    }

    @inline(never)
    private func fail(
      _ what: StaticString, _ value: UInt64, _ other: UInt64, _ checkFile: StaticString,
      _ checkLine: UInt
    ) -> Never {
      shims_checks_fail(
        checkFile.utf8Start, Int(checkLine), what.utf8Start, value, other, file.utf8Start,
        Int(line))
    }

    private static let count = Atomic<UInt32>(0)
    private static let smallestReach: UInt32 = 8

    /// How many parts of a structure to look at this time: some each time, twice as many every
    /// second time, and so on. All of each structure is looked at sooner or later, at a cost for
    /// each change that rises with the logarithm of its size.
    static func reach() -> UInt32 {
      // Not the turns themselves: who takes every eighth would never reach far, or always.
      let turn = count.wrappingAdd(1, ordering: .relaxed).newValue &* 0x9E37_79B9
      return smallestReach << min(UInt32(turn.leadingZeroBitCount), 20)
    }

    /// Goes along links until there is none; or as far as it reaches.
    ///
    /// - Parameters:
    ///   - first: Index + 1 of where to begin; 0 is the end.
    ///   - next: Looks at what is at an index, and returns what its link says.
    func walk(_ first: UInt32, _ next: (_ index: UInt32) -> UInt32) {
      let reach = Self.reach()
      var (link, landmark, steps) = (first, UInt32(0), UInt32(0))
      while link != 0 && steps < reach {
        that(link != landmark, "a list has an end", UInt64(link &- 1))
        steps &+= 1
        // The landmark moves on at powers of two: a circle of any size comes back to one.
        if steps & (steps &- 1) == 0 { landmark = link }
        link = next(link &- 1)
      }
    }
  #endif
}
