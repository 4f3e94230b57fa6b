import MulticastHeader

/// Selects delegates of a multicast.
enum Selection {
  case equal(multicast_delegate)
  case oneOf(UnsafePointer<multicast_delegate>, count: Int)
  case context(UnsafeMutableRawPointer?)
  case all

  @inline(never)
  func includes(_ registration: Registration) -> Bool {
    let other = registration.delegate
    return switch self {
    case .equal(let delegate): other == delegate
    case .oneOf(let delegates, let count): contains(delegates, count, other)
    case .context(let context): other.context == context
    case .all: true
    }
  }

  private func contains(
    _ delegates: UnsafePointer<multicast_delegate>, _ count: Int, _ other: multicast_delegate
  ) -> Bool {
    var index = 0
    while index != count {
      if delegates[index] == other { return true }
      index &+= 1
    }
    return false
  }
}
