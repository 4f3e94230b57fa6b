// Ordinary Swift with its own runtime: classes, closures, dictionaries and weak references. All of
// these call swift_* functions, and an Embedded object contains functions with some of the same
// names.
import CMulticast

final class Greeter {
  private let greetings: [String: String]
  private(set) var greeted: [String] = []
  var onGreet: ((String) -> Void)?

  init(greetings: [String: String]) { self.greetings = greetings }
  deinit { print("swift: greeter gone") }

  func greet(_ name: String) {
    greeted.append(name)
    onGreet?("swift: \(greetings["en", default: "?"]), \(name)")
  }
}

private let greet: Multicast.Function = { context, _, payload, size in
  let greeter = Unmanaged<Greeter>.fromOpaque(context!).takeUnretainedValue()
  greeter.greet(
    String(decoding: UnsafeRawBufferPointer(start: payload, count: size), as: UTF8.self))
}

private nonisolated(unsafe) weak var last: Greeter?

/// Adds a greeter, which the multicast then owns.
@_cdecl("greeting_join")
public func join(_ m: Multicast) -> Bool {
  let greeter = Greeter(greetings: ["en": "hello", "fr": "bonjour"])
  greeter.onGreet = { print($0) }
  last = greeter
  var options = Multicast.AddOptions.default
  options.release = { Unmanaged<Greeter>.fromOpaque($0!).release() }
  let delegate = Multicast.Delegate(
    function: greet, context: Unmanaged.passRetained(greeter).toOpaque())
  return m.add(delegate, options: &options, token: nil) == .ok
}

/// How often the greeter has greeted, or -1 once it has been released.
@_cdecl("greeting_count")
public func count() -> Int32 { last.map { Int32($0.greeted.count) } ?? -1 }
