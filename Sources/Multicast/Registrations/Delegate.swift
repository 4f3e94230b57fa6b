import MulticastHeader

/// Two delegates are equal if function and context both are.
@inline(__always)
func == (a: multicast_delegate, b: multicast_delegate) -> Bool {
  unsafeBitCast(a.function, to: UInt.self) == unsafeBitCast(b.function, to: UInt.self)
    && a.context == b.context
}
