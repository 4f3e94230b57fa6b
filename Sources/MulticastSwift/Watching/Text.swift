import MulticastHeader

/// The texts of the core's reports.
enum Text {
  /// What `multicast_describe` writes.
  static func describing(_ target: multicast) -> String {
    collect { multicast_describe(target, $0, $1) }
  }

  private static func collect(
    _ write: (multicast_writer, UnsafeMutableRawPointer) -> multicast_status
  ) -> String {
    var bytes: [UInt8] = []
    _ = withUnsafeMutablePointer(to: &bytes) { bytes in
      write(
        { context, text, size in
          let bytes = context!.assumingMemoryBound(to: [UInt8].self)
          bytes.pointee.append(contentsOf: UnsafeRawBufferPointer(start: text, count: size))
          return true
        }, UnsafeMutableRawPointer(bytes))
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
