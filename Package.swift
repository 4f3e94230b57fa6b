// swift-tools-version: 6.0
import PackageDescription

let package = Package(
  name: "multicast",
  products: [
    .library(name: "multicast", type: .dynamic, targets: ["Multicast"])
  ],
  targets: [
    // The header as C, for Swift to be checked against.
    .systemLibrary(name: "CMulticast", path: "include"),
    .target(
      name: "MulticastShims",
      cSettings: [.unsafeFlags(["-fvisibility=hidden"])]
    ),
    .target(
      name: "Multicast",
      dependencies: ["CMulticast", "MulticastShims"],
      swiftSettings: [
        .enableExperimentalFeature("Embedded"),
        .unsafeFlags([
          "-wmo", "-enforce-exclusivity=unchecked", "-Xfrontend", "-function-sections",
          // Where the loop of an invocation falls makes up to half of its speed.
          "-Xllvm", "-align-all-functions=6",
        ]),
      ],
      linkerSettings: [
        .unsafeFlags([
          "-use-ld=lld",
          "-Xlinker", "--version-script=\(Context.packageDirectory)/cmake/multicast.map",
          // Threads that end call into the library: it must stay mapped.
          "-Xlinker", "-z", "-Xlinker", "nodelete",
          "-Xlinker", "-z", "-Xlinker", "now", "-Xlinker", "--gc-sections",
        ])
      ]
    ),
  ]
)
