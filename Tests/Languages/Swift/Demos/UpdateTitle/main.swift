import Dispatch
import Foundation
import MulticastSwift

// View controllers register as observers of a protocol. Any code can notify the view controllers,
// and their methods then run on the main queue.

protocol UpdateTitle {
  func updateWithNewTitle(title: String)
}

class FirstViewController: UpdateTitle {
  let name: String
  init(name: String) { self.name = name }
  func viewDidLoad() { Broadcaster.register(UpdateTitle.self, observer: self) }
  func updateWithNewTitle(title: String) {
    print("\(name): \(title), on the main thread: \(Thread.isMainThread)")
  }
}

let first = FirstViewController(name: "first")
var second: FirstViewController? = FirstViewController(name: "second")
first.viewDidLoad()
second!.viewDidLoad()

func updateTitle(_ text: String) {
  Broadcaster.notify(UpdateTitle.self) { $0.updateWithNewTitle(title: text) }
}

DispatchQueue.global().sync { updateTitle("one") }
DispatchQueue.main.async {
  second = nil
  updateTitle("two")
  DispatchQueue.main.async {
    Broadcaster.unregister(UpdateTitle.self, observer: first)
    updateTitle("three")
    DispatchQueue.main.async {
      first.viewDidLoad()
      Broadcaster.unregister(UpdateTitle.self)
      updateTitle("four")
      DispatchQueue.main.async { exit(0) }
    }
  }
}
RunLoop.main.run()
