// swift-tools-version: 6.2
import PackageDescription

/// With the trait Embedded the core is what CMake builds: Embedded Swift, which needs libc only.
private let embedded: BuildSettingCondition = .when(traits: ["Embedded"])
private let embeddedOnLinux: BuildSettingCondition = .when(
  platforms: [.linux], traits: ["Embedded"])
private let embeddedOnMacOS: BuildSettingCondition = .when(
  platforms: [.macOS], traits: ["Embedded"])

let package = Package(
  name: "multicast",
  platforms: [.macOS(.v15)],  // the first with Swift's atomics
  products: [
    // For Swift programs: the overlay, and under it the core as ordinary Swift, linked statically.
    .library(name: "MulticastSwift", targets: ["MulticastSwift"]),
    // For C programs: `swift build -c release --traits Embedded` makes libmulticast.so.
    .library(name: "multicast", type: .dynamic, targets: ["Multicast"]),
    // For Swift programs that use the C interface: the header with Swift's names, `import CMulticast`,
    // and the core, linked statically.
    .library(name: "CMulticast", targets: ["Multicast"]),
  ],
  traits: [
    .trait(
      name: "Embedded",
      description: "Compile the core as Embedded Swift: libmulticast.so then needs libc only"),
    .trait(
      name: "WeakBoxes",
      description: "Refer to delegates by `weak` in a box each, not by the runtime's functions"),
  ],
  targets: [
    .systemLibrary(name: "CMulticast", path: "include/CMulticast"),
    // The header as C, for Swift to be checked against.
    .systemLibrary(name: "MulticastHeader"),
    .target(name: "MulticastShims", cSettings: [.unsafeFlags(["-Os"], embedded)]),
    .target(
      name: "Multicast",
      // CMulticast is not used here, but programs that depend on this target can import it.
      dependencies: ["CMulticast", "MulticastHeader", "MulticastShims"],
      swiftSettings: [
        .enableExperimentalFeature("Embedded", embedded),
        .unsafeFlags(
          [
            // Small code, but for functions with the attribute @_optimize(speed).
            "-wmo", "-Osize", "-enforce-exclusivity=unchecked", "-Xfrontend", "-function-sections",
            "-Xfrontend", "-disable-stack-protector",
            // No tables for exceptions, which would pass: SwiftPM cannot make swiftc write the
            // personality of MulticastShims/common/unwind.c.
            "-Xcc", "-fno-asynchronous-unwind-tables", "-Xcc", "-fno-unwind-tables",
          ], embedded),
      ],
      linkerSettings: [
        .unsafeFlags(
          [
            "-use-ld=lld",
            "-Xlinker", "--version-script=\(Context.packageDirectory)/cmake/multicast.map",
            // Threads that end call into the library: it must stay mapped.
            "-Xlinker", "-z", "-Xlinker", "nodelete",
            "-Xlinker", "-z", "-Xlinker", "now", "-Xlinker", "--gc-sections",
            // Functions with the same code are there once.
            "-Xlinker", "--icf=all",
            // SwiftPM adds debug information, ten times as large as the code.
            "-Xlinker", "--strip-debug",
          ], embeddedOnLinux),
        .unsafeFlags(
          [
            "-Xlinker", "-exported_symbols_list",
            "-Xlinker", "\(Context.packageDirectory)/cmake/multicast.exports",
            "-Xlinker", "-dead_strip",
          ], embeddedOnMacOS),
      ]
    ),
    // What the overlay needs of the Swift runtime, declared in C.
    .target(name: "MulticastRuntime"),
    // It imports the header, as CMulticast: never the Embedded module. (MulticastHeader has the same
    // declarations: the names of CMulticast would be missing in a program that imports both.)
    .target(
      name: "MulticastSwift", dependencies: ["CMulticast", "Multicast", "MulticastRuntime"],
      exclude: ["README.md"],
      // On macOS a delegate may be an object of Objective-C, for which unowned references of the
      // Swift runtime do not work.
      swiftSettings: [.define("WeakBoxes", .when(platforms: [.macOS]))]),
    .testTarget(
      name: "MulticastSwiftTests", dependencies: ["MulticastSwift", "CMulticast"],
      path: "Tests/Languages/Swift/MulticastSwiftTests",
      swiftSettings: [.treatAllWarnings(as: .error)]),
  ]
)
