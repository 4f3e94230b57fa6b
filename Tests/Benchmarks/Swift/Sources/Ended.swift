import Glibc
import MulticastSwift

/// Measures what a million objects leave behind that are deallocated as soon as they have been
/// added.
enum Ended {
  /// Megabytes in a multicast that is never invoked.
  static func delegates() -> Double {
    let multicast = MulticastDelegate<any Listener>()
    return growth { multicast.add(Counter()) }
  }

  /// Megabytes in a broadcaster that is never notified.
  static func observers() -> Double {
    let broadcaster = Broadcaster()
    return growth { broadcaster.register(Counter(), for: (any Listener).self) }
  }

  private static func growth(_ addOne: () -> Void) -> Double {
    let before = resident()
    for _ in 0..<1_000_000 { addOne() }
    return (Double(max(0, resident() - before)) / 1e5).rounded() / 10
  }

  /// The resident memory of the process in bytes, not only malloc's.
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
