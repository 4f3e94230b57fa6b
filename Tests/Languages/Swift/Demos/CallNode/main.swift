import MulticastSwift

// A message manager has one property for a delegate, but calls all objects that have ever been
// assigned to it.

protocol HDMessageManageDelegate: AnyObject {
  func newMessage(_ obj: String, msgKing: Int)
}

final class Chat: HDMessageManageDelegate {
  let name: String
  init(_ name: String) { self.name = name }
  func newMessage(_ obj: String, msgKing: Int) { print("\(name): \(obj) of kind \(msgKing)") }
}

final class HDMessageManage {
  let callNode = HDMultiPointCallNode<HDMessageManageDelegate>()

  func setDelegate(_ delegate: HDMessageManageDelegate) { callNode.pushData(delegate) }

  func download(_ obj: String, msgKing: Int) {
    callNode.callMultiPoint { data in
      self.callNewMessageDelegate(data, obj: obj, msgKing: msgKing)
    }
    print("--")
  }

  private func callNewMessageDelegate(_ data: HDMessageManageDelegate, obj: String, msgKing: Int) {
    data.newMessage(obj, msgKing: msgKing)
  }
}

let manager = HDMessageManage()
let list = Chat("list")
var window: Chat? = Chat("window")
let badge = Chat("badge")
manager.setDelegate(list)
manager.setDelegate(window!)
manager.setDelegate(badge)
manager.download("picture", msgKing: 1)

manager.setDelegate(list)  // moves `list` to the end
manager.download("sound", msgKing: 2)

window = nil
manager.download("film", msgKing: 3)

manager.callNode.popIndex(0)
manager.download("text", msgKing: 4)

manager.callNode.popData(list)
manager.download("nothing", msgKing: 5)
