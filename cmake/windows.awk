# Adapts the core's LLVM IR, which swiftc has generated for Cygwin, to Windows.

# With the target Cygwin, LLVM would emulate thread-local variables.
/^target triple = / { sub(/"[^"]*"/, "\"x86_64-w64-windows-gnu\"") }
# swiftc requests no unwinding tables for Windows. Stacks cannot be unwound without them.
/^attributes #[0-9]+ = \{/ { sub(/\{/, "{ uwtable") }
# No C++ exception may pass through the library: see windows/unwind.c.
/^define / { sub(/( ![a-z]+ ![0-9]+)* \{$/, " personality ptr @shims_windows_handler&") }
{ print }
END { print "declare i32 @shims_windows_handler(...)" }
