# Makes of the assembly that swiftc writes the one that is built: awk -f assembly.awk IN IN >OUT
#
#   -v aligned=PATTERN  sections of functions that begin on cache lines
#   -v placed=PATTERN   the function whose inner loop is to have a certain position, on x86-64
#   -v begin=N          so many bytes behind the begin of a cache line it begins
#   -v jumping=PATTERN  exported functions that jump to others instead of calling them
#   -v debug=1          keep the debug information
#   -v demangle=PATH    swift-demangle, for names that people can read
#
# IN is read twice, for its names first.
#
# Debug information is there for its side effect: with it, swiftc describes the frame of every
# function, so that debuggers and profilers see the callers of the library.

BEGIN { print "\t.hidden\tshims_personality" }

# ---- Names -----------------------------------------------------------------------------------------

# Stacks have the names of the interface, and readable ones of all other functions.
#
# An exported function is a thunk that jumps to its implementation, so that it is on no stack. The
# names are exchanged: the implementation is exported, and the linker leaves the thunk out.
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
NR == FNR && /^\tmovq\t/ { is_x86 = 1 }
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
    # Functions of one name, such as those that take other arguments.
    number = ++uses[readable]
    name_of[functions[i]] = number == 1 ? readable : readable "." number
  }
  close(list)
  system("rm -f '" list "'")
}
# In the block of a thunk, which is not exported any more.
/^\t\.section\t/ {
  hidden = $2
  gsub(/^"?\.text\.|"?,.*/, "", hidden)
  if (!(hidden in thunk_of)) hidden = ""
}
hidden != "" && /^\t\.(protected|globl|hidden)\t/ { next }
hidden != "" && !/^\t[a-z]/ && index($0, hidden) { gsub(hidden, thunk_of[hidden]) }
# The implementation may be one that was only for this module.
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

# On x86-64 an exported function calls where it would jump, so that its name is on the stack of what
# it has called. To multicast_invoke_listed, which has its
# name, it jumps. Those of `jumping` jump, because a call would take longer: there, what they jump to
# has a name that says as much. Nothing is passed on the stack: no exported function has more than six
# arguments.
/^(multicast_[a-z_]+|Multicast.multicast_invoke_listed):/ { is_interface = $1 !~ ("^(" jumping "):"); stub_count = 0 }
is_interface && !/multicast_invoke_listed/ && /^\tjmpq?\t.*# TAILCALL/ {
  $0 = call_of($0)
}
is_interface && !/multicast_invoke_listed/ && /^\tj[a-z]+\t.*# TAILCALL/ {
  stubs[++stub_count] = $0
  $0 = "\t" $1 "\t.Lcalled_" ++called
}
is_interface && /^\.Lfunc_end[0-9]+:/ {
  # In the state of the function's beginning.
  for (i = 1; i <= stub_count; ++i) {
    print ".Lcalled_" (called - stub_count + i) ":"
    if (i == 1) print "\t.cfi_restore_state"
    print call_of(stubs[i])
  }
  is_interface = 0
}
# The function has restored the registers of its caller, and what it has called overwrites the stack
# from which it did: an unwinder must not look for them there. With frame pointers it has a frame.
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

# ---- What GNU's assembler takes --------------------------------------------------------------------


# Other assemblers warn of a type of sections that LLVM alone has. There is nothing in it.
/^\t\.section\t"?\.linker-options/ { next }
# .debug_names never: it names nothing of the shims, and gdb takes it for all that there is.
/^\t\.(section|text|data|bss)/ { dropping = /^\t\.section\t"?\.debug_/ && (!debug || /names/) }
/^\t\.(weak|hidden)\t/ { print; next }
dropping { next }
!debug && /^\t\.(file|loc)\t/ { next }
# GNU's assembler takes a folder and a name only together.
/^\t\.file\t[0-9]+ "[^"]*" "/ {
  split($0, part, "\"")
  $0 = part[1] "\"" (part[4] ~ /^\// ? "" : part[2] "/") part[4] "\""
}
# Nor does it take the name of a symbol there, which only says what may be left out together, and
# which may have newlines.
/^\t\.section\tasan_globals,/ {
  while (!/"awo",@progbits,("([^"\\]|\\.)*"|[^",]+)/ && (getline more) > 0) $0 = $0 "\n" more
  sub(/"awo",@progbits,("([^"\\]|\\.)*"|[^",]+)/, "\"aw\",@progbits")
}

# The names of constants are texts, some with newlines, of which GNU's assembler warns.
/\\n/ && !/^\t\.asci[iz]/ { gsub(/\\n/, "|") }

# The extensions of a RISC-V processor, some of which older assemblers do not know by name. They take
# those that the C compiler is for.
/^\t\.attribute\t5,/ { riscv = 1; next }
# clang calls no symbol there that begins with a dollar sign. Demanglers know both forms.
riscv && !/^\t\.asci[iz]/ { gsub(/\$[es]/, "_&") }
# In .eh_frame, which is loaded, not in the debug information, for processors without a system, too.
/^\t\.cfi_sections/ { next }

# The time of a loop depends on where it begins within a cache line. The function begins where that
# is right, and the loop follows without padding, which would take time. Tests/Benchmarks/placement
# says which positions are right.
/^\t\.section\t"?\.text\./ { is_placed = placed != "" && is_x86 && $0 ~ placed; has_begun = 0 }
is_placed && !has_begun && /^[^\t .#][^\t ]*:/ { print "\t.skip\t" begin ", 0x90"; has_begun = 1 }
padding != "" {
  if (!/Inner Loop Header/) print padding
  padding = ""
}
is_placed && has_begun && /^\t\.p2align\t/ { padding = $0; next }

{ print }
/^\t\.section\t"?\.text\./ && aligned != "" && $0 ~ aligned { print "\t.p2align\t6" }
# No exception passes through the library: see unwind.c. 0x1b: the distance, in 4 bytes.
/^\t\.cfi_startproc/ { print "\t.cfi_personality\t0x1b, shims_personality" }
is_interface && /^\t\.cfi_startproc/ { print "\t.cfi_remember_state" }
