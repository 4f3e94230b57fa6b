import MulticastHeader
import MulticastShims

/// A text for users, composed in a caller's buffer and passed to a writer line by line.
struct Text {
  /// The text of a line, with placeholders for values:
  ///
  ///     %x  hexadecimal      %s  a text
  ///     %d  decimal          %t  nanoseconds, as seconds
  ///     %l  a space and the label that `keep` stored, in quotes; nothing if it is empty.
  ///         It takes no value.
  struct Format: ExpressibleByStringLiteral {
    fileprivate var rest: UnsafePointer<UInt8>

    init(stringLiteral text: StaticString) { rest = text.utf8Start }

    fileprivate mutating func next() -> UInt8 {
      let character = rest.pointee
      rest += 1
      return character
    }
  }

  /// The maximum size of a line in bytes. Longer lines would be truncated, but no report contains
  /// one.
  static let lineSize = 768

  /// The writer; nil if the text is written to a file descriptor.
  let writer: multicast_writer?
  let context: UnsafeMutableRawPointer?
  private let line: UnsafeMutablePointer<UInt8>
  private var length = 0
  private var label = shims_label()
  /// Whether the writer has accepted all lines so far.
  private(set) var goesOn = true

  init(
    _ writer: multicast_writer?, _ context: UnsafeMutableRawPointer?,
    line: UnsafeMutablePointer<UInt8>
  ) {
    self.writer = writer
    self.context = context
    self.line = line
  }

  /// Stores a label for the next line. Nil means that there is no label.
  @inline(never)
  mutating func keep(_ label: UnsafeMutablePointer<shims_label>?) {
    self.label = label?.pointee ?? shims_label()
  }

  /// Stores the first 63 bytes of a name as the label. For a prefix, appends an asterisk.
  mutating func keep(_ name: Name) {
    label = shims_label()
    let size = min(name.length, MemoryLayout<shims_label>.size - 1)
    withUnsafeMutableBytes(of: &label) {
      shims_copy($0.baseAddress, name.bytes, size)
      if !name.isPrefix { return }
      shims_copy($0.baseAddress, name.bytes + 1, size &- 1)
      $0[size &- 1] = UInt8(ascii: "*")
    }
  }

  var hasLabel: Bool { label.text.0 != 0 }

  @inline(never)
  mutating func add(_ format: Format) { add(format, 0) }

  @inline(never)
  mutating func add(
    _ format: Format, _ first: UInt64, _ second: UInt64 = 0, _ third: UInt64 = 0,
    _ fourth: UInt64 = 0
  ) {
    var format = format
    var (value, second, third, fourth) = (first, second, third, fourth)
    while true {
      let character = format.next()
      if character == 0 { return }
      if character != UInt8(ascii: "%") {
        put(character)
        continue
      }
      switch format.next() {
      case UInt8(ascii: "x"): put(prefixed: value)
      case UInt8(ascii: "d"): put(value)
      case UInt8(ascii: "t"):
        put(value / 1_000_000_000)
        put(UInt8(ascii: "."))
        put(value / 1_000_000 % 1000, digits: 3)
      case UInt8(ascii: "s"): put(UnsafePointer(bitPattern: UInt(value)))
      default:
        putLabel()
        continue
      }
      (value, second, third, fourth) = (second, third, fourth, 0)
    }
  }

  private mutating func put(_ character: UInt8) {
    if length < Self.lineSize {
      line[length] = character
      length &+= 1
    }
    if character == UInt8(ascii: "\n") { pass() }
  }

  /// Passes the line to the writer. No lock is held.
  private mutating func pass() {
    line[length &- 1] = UInt8(ascii: "\n")
    let size = length
    length = 0
    if !goesOn { return }
    Lock.checkNoneIsHeld()
    if let writer {
      goesOn = line.withMemoryRebound(to: CChar.self, capacity: size) { writer(context, $0, size) }
    } else {
      let descriptor = context?.load(as: Int32.self) ?? 2
      goesOn = shims_write(descriptor, line, size)
    }
  }

  private mutating func put(
    _ number: UInt64, base: UInt64 = 10, digits: Int = 1
  ) {
    var (unit, left) = (UInt64(1), digits &- 1)
    while left > 0 || number / unit >= base {
      unit &*= base
      left &-= 1
    }
    while unit > 0 {
      let digit = UInt8(truncatingIfNeeded: number / unit % base)
      put(digit &+ (digit < 10 ? UInt8(ascii: "0") : UInt8(ascii: "a") &- 10))
      unit /= base
    }
  }

  private mutating func put(prefixed number: UInt64) {
    put(UInt8(ascii: "0"))
    put(UInt8(ascii: "x"))
    put(number, base: 16)
  }

  private mutating func put(_ text: UnsafePointer<CChar>?) {
    guard var text else { return }
    while text.pointee != 0 {
      // Replace control characters, which could end the line, and quotation marks, which could end
      // a label.
      let character = UInt8(bitPattern: text.pointee)
      let isPlain = character >= 32 && character != UInt8(ascii: "\"")
      put(isPlain ? character : UInt8(ascii: "?"))
      text += 1
    }
  }

  private mutating func putLabel() {
    if !hasLabel { return }
    put(UInt8(ascii: " "))
    put(UInt8(ascii: "\""))
    withUnsafePointer(to: label) { put(shims_get_label($0)) }
    put(UInt8(ascii: "\""))
  }
}
