// swift-tools-version: 6.2
import PackageDescription

/// With the trait Embedded, the core is compiled as Embedded Swift, as with CMake, and needs only
/// libc.
private let embedded: BuildSettingCondition = .when(traits: ["Embedded"])
private let embeddedOnLinux: BuildSettingCondition = .when(
  platforms: [.linux], traits: ["Embedded"])
private let embeddedOnMacOS: BuildSettingCondition = .when(
  platforms: [.macOS], traits: ["Embedded"])

let package = Package(
  name: "multicast",
  platforms: [.macOS(.v15)],  // the first version with Swift's atomics
  products: [
    // For Swift programs: contains the overlay and the core as ordinary Swift, linked statically.
    .library(name: "MulticastSwift", targets: ["MulticastSwift"]),
    // For C programs: `swift build -c release --traits Embedded` builds libmulticast.so.
    .library(name: "multicast", type: .dynamic, targets: ["Multicast"]),
    // For Swift programs that use the C interface: `import CMulticast` imports the header with
    // Swift names. The core is linked statically.
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
    // The header with C names, against which the compiler checks the core's exports.
    .systemLibrary(name: "MulticastHeader"),
    .target(name: "MulticastShims", cSettings: [.unsafeFlags(["-Os"], embedded)]),
    .target(
      name: "Multicast",
      // This target does not use CMulticast, but programs that depend on this target can import it.
      dependencies: ["CMulticast", "MulticastHeader", "MulticastShims"],
      swiftSettings: [
        .enableExperimentalFeature("Embedded", embedded),
        .unsafeFlags(
          [
            // Optimize for size, except functions with the attribute @_optimize(speed).
            "-wmo", "-Osize", "-enforce-exclusivity=unchecked", "-Xfrontend", "-function-sections",
            "-Xfrontend", "-disable-stack-protector",
            // Omit unwinding tables, so that no exception can pass through the library. Other
            // builds prevent this with MulticastShims/common/unwind.c, but SwiftPM cannot make
            // swiftc use that file.
            "-Xcc", "-fno-asynchronous-unwind-tables", "-Xcc", "-fno-unwind-tables",
          ], embedded),
      ],
      linkerSettings: [
        .unsafeFlags(
          [
            "-use-ld=lld",
            "-Xlinker", "--version-script=\(Context.packageDirectory)/cmake/multicast.map",
            // The library must stay mapped, because threads call into it when they end.
            "-Xlinker", "-z", "-Xlinker", "nodelete",
            "-Xlinker", "-z", "-Xlinker", "now", "-Xlinker", "--gc-sections",
            // Merge functions that have the same code.
            "-Xlinker", "--icf=all",
            // SwiftPM adds debug information that is ten times as large as the code.
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
    // Declares, in C, the functions of the Swift runtime that the overlay uses.
    .target(name: "MulticastRuntime"),
    // The overlay imports the header as CMulticast, and never the Embedded module. It does not
    // import MulticastHeader, which has the same declarations, because a program that imports both
    // modules would not see the names of CMulticast.
    .target(
      name: "MulticastSwift", dependencies: ["CMulticast", "Multicast", "MulticastRuntime"],
      exclude: ["README.md"],
      // On macOS a delegate may be an Objective-C object, for which the Swift runtime's unowned
      // references do not work.
      swiftSettings: [.define("WeakBoxes", .when(platforms: [.macOS]))]),
    .testTarget(
      name: "MulticastSwiftTests", dependencies: ["MulticastSwift", "CMulticast"],
      path: "Tests/Languages/Swift/MulticastSwiftTests",
      swiftSettings: [.treatAllWarnings(as: .error)]),
  ]
)
