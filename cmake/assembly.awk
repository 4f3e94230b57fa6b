# Changes the assembly that swiftc has written, before it is assembled: awk -f assembly.awk IN IN
# >OUT
#
#   -v aligned=PATTERN  sections of functions that begin on cache lines
#   -v placed=PATTERN   the function whose inner loop needs a certain position, on x86-64
#   -v begin=N          that function begins N bytes after the start of a cache line
#   -v jumping=PATTERN  exported functions that jump to others instead of calling them
#   -v debug=1          keep the debug information
#   -v demangle=PATH    swift-demangle, for readable names
#
# IN is read twice: the first pass reads the names.
#
# swiftc is run with debug information because of a side effect: it then describes the frame of
# every function, so that debuggers and profilers see the callers of the library.

BEGIN { print "\t.hidden\tshims_personality" }

# ---- Names -----------------------------------------------------------------------------------------

# In stack traces, interface functions have their exported names, and all other functions have
# readable names.
#
# swiftc compiles an exported function to a thunk that jumps to the implementation, so the exported
# name would not appear on any stack. This script exchanges the two names: the implementation is
# exported, and the linker leaves the thunk out.
NR == FNR && /^multicast_[a-z_]+:/ { thunk = $1; sub(/:.*/, "", thunk); length_of_thunk = 0; next }
NR == FNR && thunk != "" && /^\t[a-z]/ {
  ++length_of_thunk
  target = $2
  gsub(/[()]/, "", target)
  is_jump = $1 ~ /^(jmp|b|tail)$/ && target ~ /^\$[es][0-9]/
}
NR == FNR && thunk != "" && /^\t\.cfi_endproc/ {
  if (length_of_thunk == 1 && is_jump && !(target in name_of)) {
    name_of[target] = thunk
    thunk_of[thunk] = thunk ".thunk"
    is_exported[target]
  }
  thunk = ""
}
NR == FNR && /^\t\.type\t"?\$[es][0-9]+Multicast.*@function/ {
  name = $2
  gsub(/"|,@function/, "", name)
  functions[++count] = name
}
NR == FNR && /^\tmovq\t%rsp, %rbp/ { has_frames = 1 }
NR == FNR && /^\tmovq\t.*%r[a-z0-9]/ { is_x86 = 1 }
NR == FNR && /^\tpushl\t%e/ { is_i386 = 1 }
NR == FNR { next }
FNR == 1 && demangle != "" {
  list = FILENAME ".names"
  command = demangle " -compact -simplified >'" list "'"
  for (i = 1; i <= count; ++i) print functions[i] | command
  close(command)
  for (i = 1; i <= count && (getline readable <list) > 0; ++i) {
    if (functions[i] in name_of) continue
    # "specialized static Queue.run(_:limit:)", "closure #1 (Int) -> () in Queue.run(_:limit:)"
    closure = ""
    if (match(readable, /closure #[0-9]+/)) {
      closure = ".closure" substr(readable, RSTART + 9, RLENGTH - 9)
    }
    while (match(readable, / in /)) readable = substr(readable, RSTART + 4)
    sub(/^((specialized|merged|static|partial apply for|@objc|@nonobjc|outlined) )+/, "", readable)
    if (!match(readable, /^[A-Za-z_][A-Za-z_0-9.]*/)) continue
    readable = "Multicast." substr(readable, 1, RLENGTH) closure
    # Functions with the same name, such as overloads, are numbered.
    number = ++uses[readable]
    name_of[functions[i]] = number == 1 ? readable : readable "." number
  }
  close(list)
  system("rm -f '" list "'")
}
# Finds the sections of thunks, which are no longer exported.
/^\t\.section\t/ {
  hidden = $2
  gsub(/^"?\.text\.|"?,.*/, "", hidden)
  if (!(hidden in thunk_of)) hidden = ""
}
hidden != "" && /^\t\.(protected|globl|hidden)\t/ { next }
hidden != "" && !/^\t[a-z]/ && index($0, hidden) { gsub(hidden, thunk_of[hidden]) }
# Exports the implementation, which may have been internal to the module.
/^\t\.(hidden|weak)\t\$[es][0-9]/ && $2 in is_exported {
  sub(/hidden/, "protected")
  sub(/weak/, "globl")
}
/\$[es][0-9]/ && !/^\t\.asci[iz]/ {
  rest = $0
  $0 = ""
  while (match(rest, /\$[es][0-9][A-Za-z_0-9]*/)) {
    name = substr(rest, RSTART, RLENGTH)
    $0 = $0 substr(rest, 1, RSTART - 1) (name in name_of ? name_of[name] : name)
    rest = substr(rest, RSTART + RLENGTH)
  }
  $0 = $0 rest
}

# On x86-64, the tail calls that an exported function makes are changed from jumps to calls, so that
# backtraces contain the exported function while the called function runs. A jump to multicast_invoke_listed remains a
# jump, because that name is just as helpful. Functions in `jumping` keep their jumps, because calls
# would take longer, and the names of their targets are just as helpful. No exported function has
# more than six arguments, so nothing is passed on the stack.
/^(multicast_[a-z_]+|Multicast.multicast_invoke_listed):/ { is_interface = $1 !~ ("^(" jumping "):"); stub_count = 0 }
is_interface && is_x86 && !/multicast_invoke_listed/ && /^\tjmpq?\t.*# TAILCALL/ {
  $0 = call_of($0)
}
is_interface && is_x86 && !/multicast_invoke_listed/ && /^\tj[a-z]+\t.*# TAILCALL/ {
  stubs[++stub_count] = $0
  $0 = "\t" $1 "\t.Lcalled_" ++called
}
is_interface && is_x86 && /^\.Lfunc_end[0-9]+:/ {
  # In the stubs, the unwinding state is the same as at the start of the function.
  for (i = 1; i <= stub_count; ++i) {
    print ".Lcalled_" (called - stub_count + i) ":"
    if (i == 1) print "\t.cfi_restore_state"
    print call_of(stubs[i])
  }
  is_interface = 0
}
# The function has already restored the registers of its caller, and the called function overwrites
# the stack slots from which they were restored. An unwinder must therefore not read these slots.
# With frame pointers, the stub has a frame.
function call_of(jump) {
  sub(/^\tj[a-z]+\t/, "", jump)
  sub(/[ \t]*# TAILCALL.*/, "", jump)
  return (has_frames ? "\tpushq\t%rbp" : "\tsubq\t$8, %rsp") \
    "\n\t.cfi_remember_state\n\t.cfi_adjust_cfa_offset 8" \
    "\n\t.cfi_restore %rbx\n\t.cfi_restore %rbp\n\t.cfi_restore %r12\n\t.cfi_restore %r13" \
    "\n\t.cfi_restore %r14\n\t.cfi_restore %r15" \
    (has_frames ? "\n\t.cfi_offset %rbp, -16\n\tmovq\t%rsp, %rbp" : "") "\n\tcallq\t" jump \
    (has_frames ? "\n\tpopq\t%rbp" : "\n\taddq\t$8, %rsp") "\n\t.cfi_restore_state\n\tretq"
}

# ---- Differences between assemblers ----------------------------------------------------------------

# Other assemblers warn about this section type, which only LLVM has. These sections are empty.
/^\t\.section\t"?\.linker-options/ { next }
# .debug_names is always dropped, because gdb treats it as a complete index, although it contains no
# names of the shims.
/^\t\.(section|text|data|bss)/ { dropping = /^\t\.section\t"?\.debug_/ && (!debug || /names/) }
/^\t\.(weak|hidden)\t/ { print; next }
dropping { next }
!debug && /^\t\.(file|loc)\t/ { next }
# GNU's assembler accepts a folder and a file name only as one string.
/^\t\.file\t[0-9]+ "[^"]*" "/ {
  split($0, part, "\"")
  $0 = part[1] "\"" (part[4] ~ /^\// ? "" : part[2] "/") part[4] "\""
}
# GNU's assembler does not accept a symbol name in this directive. The name, which may contain
# newlines, only says which sections may be left out together.
/^\t\.section\tasan_globals,/ {
  while (!/"awo",@progbits,("([^"\\]|\\.)*"|[^",]+)/ && (getline more) > 0) $0 = $0 "\n" more
  sub(/"awo",@progbits,("([^"\\]|\\.)*"|[^",]+)/, "\"aw\",@progbits")
}

# The names of some constants are made from texts that contain newlines, about which GNU's assembler
# warns.
/\\n/ && !/^\t\.asci[iz]/ { gsub(/\\n/, "|") }
# GNU's assembler accepts no suffix such as @GOTOFF after a name in quotation marks.
is_i386 && /"\.L/ && !/^\t\.asci[iz]/ {
  rest = $0
  $0 = ""
  while (match(rest, /"\.L([^"\\]|\\.)*"/)) {
    name = substr(rest, RSTART, RLENGTH)
    if (!(name in plain_name_of)) plain_name_of[name] = ".Ltext_" ++plain_count
    $0 = $0 substr(rest, 1, RSTART - 1) plain_name_of[name]
    rest = substr(rest, RSTART + RLENGTH)
  }
  $0 = $0 rest
}

# Drops the list of RISC-V extensions, some of which older assemblers do not know. Without the list,
# assemblers use the extensions for which the C compiler is configured.
/^\t\.attribute\t5,/ { lacks_dollars = 1; next }
# Adds an underscore to names that begin with a dollar sign, because clang on RISC-V and GNU's
# assembler on ARM do not support calls to such symbols. Demanglers accept both forms.
/^\t\.eabi_attribute\t/ && !is_arm { lacks_dollars = is_arm = 1; print "\t.arch\tarmv7-a" }
lacks_dollars && !/^\t\.asci[iz]/ { gsub(/\$[es]/, "_&") }
# Unwinding tables must be in .eh_frame, which is loaded. For targets without an operating system,
# swiftc would put them into the debug information.
/^\t\.cfi_sections/ && !is_arm { next }
# On ARM the unwinding tables are in .ARM.exidx. LLVM describes each frame there, but then declares
# that the functions cannot be unwound.
is_arm && /^\t\.cantunwind/ { print "\t.personality\tshims_personality"; next }

# The speed of a loop depends on where it begins within a cache line. The function starts at an
# offset that puts the loop in a good position, because padding before the loop would take time to
# execute. Tests/Benchmarks/placement says which positions are good.
/^\t\.section\t"?\.text\./ { is_placed = placed != "" && is_x86 && $0 ~ placed; has_begun = 0 }
is_placed && !has_begun && /^[^\t .#][^\t ]*:/ { print "\t.skip\t" begin ", 0x90"; has_begun = 1 }
padding != "" {
  if (!/Inner Loop Header/) print padding
  padding = ""
}
is_placed && has_begun && /^\t\.p2align\t/ { padding = $0; next }

{ print }
/^\t\.section\t"?\.text\./ && aligned != "" && $0 ~ aligned { print "\t.p2align\t6" }
# No exception may pass through the library: see unwind.c. 0x1b means a relative address of 4 bytes.
/^\t\.cfi_startproc/ && !is_arm { print "\t.cfi_personality\t0x1b, shims_personality" }
is_interface && is_x86 && /^\t\.cfi_startproc/ { print "\t.cfi_remember_state" }
