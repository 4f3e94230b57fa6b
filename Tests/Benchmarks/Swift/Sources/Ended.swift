import Glibc
import MulticastSwift

/// What a million objects leave behind that end as soon as they have been added.
enum Ended {
  /// Megabytes of a multicast that nobody invokes.
  static func delegates() -> Double {
    let multicast = MulticastDelegate<any Listener>()
    return growth { multicast.add(Counter()) }
  }

  /// Megabytes of a broadcaster that nobody notifies.
  static func observers() -> Double {
    let broadcaster = Broadcaster()
    return growth { broadcaster.register(Counter(), for: (any Listener).self) }
  }

  private static func growth(_ addOne: () -> Void) -> Double {
    let before = resident()
    for _ in 0..<1_000_000 { addOne() }
    return (Double(max(0, resident() - before)) / 1e5).rounded() / 10
  }

  /// Bytes of memory that the process has in use; not malloc's alone.
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
