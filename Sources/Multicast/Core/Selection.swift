import CMulticast

/// Which delegates of a multicast are meant.
enum Selection {
  case equal(multicast_delegate)
  case oneOf(UnsafePointer<multicast_delegate>, count: Int)
  case context(UnsafeMutableRawPointer?)
  case all

  @inline(__always)
  func includes(_ entry: UnsafeMutablePointer<InvocationList.Entry>) -> Bool {
    switch self {
    case .equal(let delegate): InvocationList.delegate(of: entry) == delegate
    case .oneOf(let delegates, let count): contains(delegates, count, entry)
    case .context(let context): entry.pointee.context == context
    case .all: true
    }
  }

  private func contains(
    _ delegates: UnsafePointer<multicast_delegate>, _ count: Int,
    _ entry: UnsafeMutablePointer<InvocationList.Entry>
  ) -> Bool {
    var index = 0
    while index != count {
      if delegates[index] == InvocationList.delegate(of: entry) { return true }
      index &+= 1
    }
    return false
  }
}
