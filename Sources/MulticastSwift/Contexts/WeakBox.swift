#if WeakBoxes
  /// One box for each object, as long as a registration refers to it: so the delegates of two
  /// registrations are equal.
  ///
  /// `@unchecked`: the references are set before another thread can see the box. After that they
  /// are only read; the runtime orders these reads with the end of the object.
  final class WeakBox: @unchecked Sendable {
    private(set) weak var object: AnyObject?
    /// Its address is not used again while the box exists: an address leads to one object.
    private unowned let address: AnyObject

    private init(_ object: AnyObject) {
      self.object = object
      address = object
    }

    private struct Boxes: Sendable {
      var ofAddress: [UInt: WeakBox] = [:]
      /// Boxes without a registration are dropped when there are that many.
      var limit = 64
    }

    private static let boxes = Locked(Boxes())

    /// `@unchecked`: it only passes an object on.
    private struct Passed: @unchecked Sendable {
      let object: AnyObject

      var address: UInt { UInt(bitPattern: Unmanaged.passUnretained(object).toOpaque()) }
    }

    /// The box of an object that may be in its `deinit`; nil if it has no registration.
    static func knownBox(of object: AnyObject) -> WeakBox? {
      let address = Passed(object: object).address
      return boxes.withLock { $0.ofAddress[address] }
    }

    static func box(of object: AnyObject) -> WeakBox {
      let passed = Passed(object: object)
      return boxes.withLock { boxes in
        if let box = boxes.ofAddress[passed.address] { return box }
        if boxes.ofAddress.count >= boxes.limit {
          dropUnused(&boxes.ofAddress)
          boxes.limit = 64 + 2 * boxes.ofAddress.count
        }
        let box = WeakBox(passed.object)
        boxes.ofAddress[passed.address] = box
        return box
      }
    }

    /// A box ends without code of others: it has no strong reference.
    private static func dropUnused(_ boxes: inout [UInt: WeakBox]) {
      var unused: [UInt] = []
      var index = boxes.startIndex
      while index != boxes.endIndex {
        if isKnownUniquelyReferenced(&boxes.values[index]) { unused.append(boxes.keys[index]) }
        boxes.formIndex(after: &index)
      }
      for address in unused { boxes[address] = nil }
    }
  }
#endif
