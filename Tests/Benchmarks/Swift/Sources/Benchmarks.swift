/// Measures every contender in each of several rounds, and prints the best figures as a table.
@main
struct Benchmarks {
  static var contenders: [any Contender.Type] {
    [
      WeakMulticast.self, StrongMulticast.self, SignalOfClosures.self, LockedBoxes.self,
      LockedArray.self, CompactedBoxes.self, CastBoxes.self, WeakList.self, SetsByName.self,
      ClosureArray.self, Streams.self,
    ]
  }

  static func main() async {
    let isQuick = CommandLine.arguments.dropFirst() == ["--quick"]
    let (rounds, time) = isQuick ? (1, Duration.microseconds(10)) : (15, .milliseconds(5))
    let (contenders, questions) = (contenders, Question.all)
    var best: [[Double]] = contenders.map { _ in questions.map { _ in .infinity } }
    // Contenders take turns, so that the machine's slow moments affect all of them equally.
    for _ in 0..<rounds {
      for (row, contender) in contenders.enumerated() {
        for (column, question) in questions.enumerated() {
          best[row][column] = min(best[row][column], await question.measure(contender, time))
        }
      }
    }
    let titles = questions.map(\.title)
    print("| | \(titles.joined(separator: " | ")) |")
    print("| --- |\(titles.map { _ in " --: |" }.joined())")
    for (contender, figures) in zip(contenders, best) {
      let cells = zip(questions, figures).map { "\(text($1))\($0.unit)" }
      print("| \(contender.name) | \(cells.joined(separator: " | ")) |")
    }
    print("\nA million ended delegates, not invoked: \(Ended.delegates()) MB")
    print("A million ended observers, not notified: \(Ended.observers()) MB")
    print("\nThe best of \(rounds). Not measured: Combine does not exist on Linux.")
  }

  private static func text(_ figure: Double) -> String {
    figure < 100 ? "\((figure * 10).rounded() / 10)" : "\(Int(figure.rounded()))"
  }
}
