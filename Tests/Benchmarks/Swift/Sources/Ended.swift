import Glibc
import MulticastSwift

/// Measures how much memory a million objects leave behind if each is deallocated as soon as it has
/// been added.
enum Ended {
  /// Returns how many megabytes remain allocated for a multicast that is never invoked.
  static func delegates() -> Double {
    let multicast = MulticastDelegate<any Listener>()
    return growth { multicast.add(Counter()) }
  }

  /// Returns how many megabytes remain allocated for a broadcaster that never notifies.
  static func observers() -> Double {
    let broadcaster = Broadcaster()
    return growth { broadcaster.register(Counter(), for: (any Listener).self) }
  }

  private static func growth(_ addOne: () -> Void) -> Double {
    let before = resident()
    for _ in 0..<1_000_000 { addOne() }
    return (Double(max(0, resident() - before)) / 1e5).rounded() / 10
  }

  /// Returns the resident memory of the whole process in bytes.
  private static func resident() -> Int {
    let file = fopen("/proc/self/statm", "r")!
    defer { fclose(file) }
    var (size, resident) = (0, 0)
    let count = withUnsafeMutablePointer(to: &size) { size in
      withUnsafeMutablePointer(to: &resident) {
        withVaList([size, $0]) { vfscanf(file, "%ld %ld", $0) }
      }
    }
    precondition(count == 2)
    return resident * Int(getpagesize())
  }
}
