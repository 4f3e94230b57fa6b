import CMulticast

/// The texts of the core's reports.
enum Text {
  /// The text of `multicast_describe`.
  static func describing(_ target: Multicast) -> String {
    collect { target.describe(to: $0, $1) }
  }

  private static func collect(
    _ write: (Multicast.Writer, UnsafeMutableRawPointer) -> Multicast.Status
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
