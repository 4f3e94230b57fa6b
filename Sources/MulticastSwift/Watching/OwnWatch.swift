import CMulticast

/// The watch of one multicast, or of all: the C interface has pointers to watches that are in use.
final class OwnWatch: Sendable {
  private struct Content: Sendable {
    /// The newest, and others whose functions may still run.
    var watches: [Watch] = []
    /// How many changes have begun, and how many of them go on.
    var changes = 0
    var running = 0
  }

  private let content = Locked(Content())

  @discardableResult
  func replace(with watch: Watch?, of target: Multicast) -> Removal {
    let (number, older, isAlone) = content.withLock { content in
      let older = content.watches.count
      if let watch { content.watches.append(watch) }
      content.changes += 1
      content.running += 1
      return (content.changes, older, content.running == 1)
    }
    // Waits for functions of the last watch: not under the lock.
    let status: Multicast.Status
    if var options = watch?.options {
      status = target.setWatch(&options)
    } else {
      status = target.setWatch(nil)
    }
    let result = Removal(status)
    // If another change went on at the beginning, or has begun since, it is unknown which watch is
    // set now: they stay until the next change.
    let ended = content.withLock { content -> [Watch] in
      content.running -= 1
      guard result == .ended, isAlone, content.changes == number else { return [] }
      defer { content.watches.removeFirst(older) }
      return Array(content.watches.prefix(older))
    }
    withExtendedLifetime(ended) {}
    return result
  }

  deinit {
    // A function of one of them may still run, inside which the multicast was given up.
    for watch in content.withLock({ $0.watches }) { _ = Unmanaged.passRetained(watch) }
  }
}
