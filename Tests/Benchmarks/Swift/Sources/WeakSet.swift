import Dispatch

/// Two members are equal if they were created for the same object.
private struct WeakMember: Hashable {
  private let identity: ObjectIdentifier
  private(set) weak var object: AnyObject?

  init(_ object: AnyObject) {
    identity = ObjectIdentifier(object)
    self.object = object
  }

  static func == (one: Self, other: Self) -> Bool { one.identity == other.identity }

  func hash(into hasher: inout Hasher) { hasher.combine(identity) }
}

/// There is a set for each protocol name. A concurrent queue protects the sets: notifications may
/// read them at the same time, and changes are barriers. Calls are made on the notifying thread,
/// not on the main queue.
///
/// `@unchecked` is safe because the queue orders all accesses.
final class SetsByName: Contender, @unchecked Sendable {
  static let name = "sets of weak references by name, on a queue"
  private let queue = DispatchQueue(label: "sets", attributes: .concurrent)
  private var sets: [String: Set<WeakMember>] = [:]

  func add(_ counter: Counter) {
    let name = "\((any Listener).self)"
    queue.async(flags: .barrier) { self.sets[name, default: []].update(with: WeakMember(counter)) }
  }

  func remove(_ counter: Counter) {
    let name = "\((any Listener).self)"
    queue.async(flags: .barrier) { self.sets[name]?.remove(WeakMember(counter)) }
  }

  func invoke(times: Int) {
    for _ in 0..<times {
      let name = "\((any Listener).self)"
      let members = queue.sync { sets[name] ?? [] }
      for object in members.compactMap(\.object) {
        if let listener = object as? any Listener { listener.hear(1) }
      }
    }
  }

  /// Waits until all changes are complete.
  func finish() { queue.sync(flags: .barrier) {} }
}
