# Makes of the assembly that swiftc writes the one that is built: awk -f assembly.awk IN >OUT
#
#   -v aligned=PATTERN  sections of functions that begin on cache lines
#   -v debug=1          keep the debug information
#
# Debug information is there for its side effect: with it, swiftc describes the frame of every
# function, so that debuggers and profilers see the callers of the library.

BEGIN { print "\t.hidden\tshims_personality" }

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

{ print }
/^\t\.section\t"?\.text\./ && aligned != "" && $0 ~ aligned { print "\t.p2align\t6" }
# No exception passes through the library: see unwind.c. 0x1b: the distance, in 4 bytes.
/^\t\.cfi_startproc/ { print "\t.cfi_personality\t0x1b, shims_personality" }
