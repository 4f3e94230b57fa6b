/// Each name is found, and counted. The names' lock is held.
extension NameTable: Checked {
  #if MULTICAST_INTERNAL_CHECKS
    func check(_ check: Check) {
      let size = UInt64(self.size)
      check.that(size & (size - 1) == 0, "a size is a power of two", size)
      check.that(
        header.pointee.count < Int(size), "an empty place ends each search", header.pointee.count,
        size)
      check.that(
        header.pointee.left >= 0 && header.pointee.chunkCount >= 0, "what is left is not negative")
      if Int(Check.reach()) < header.pointee.count { return }

      var (count, index) = (0, 0)
      while let known = next(&index) {
        count += 1
        check.that(
          known.name.length > 0 && known.name.length <= Name.longest, "names have a length",
          known.name.length)
        check.that(
          find(known.name)?.name.bytes == known.name.bytes, "each name is found where it is", count)
        check.that(
          known.multicast.kind == .multicast, "each name has a multicast", known.multicast.rawValue)
      }
      check.that(count == header.pointee.count, "names are counted", count, header.pointee.count)
    }
  #endif
}
