# Changes the assembly for macOS that swiftc has written, before it is assembled: awk -f
# assembly-macho.awk IN IN >OUT
#
#   -v debug=1          keep the debug information
#
# assembly.awk does the same for ELF and has the same arguments. This script needs only one pass
# over IN, because functions keep the names that swiftc gives them, which the tools of macOS can
# demangle.

NR != FNR { exit }

# Exports only the interface, even if the linker ignores the list of exports. The other names are
# visible to the library's other objects, until `ld -r` makes them local.
/^\t\.globl\t/ {
  name = $2
  gsub(/"/, "", name)
  if (name !~ /^_multicast_/) sub(/\.globl/, ".private_extern")
}

/^\t\.section\t/ { dropping = !debug && /__DWARF,/ }
# This directive lets the linker leave out individual functions.
/^\.subsections_via_symbols/ { print; next }
dropping { next }
!debug && /^\t\.(file|loc)\t/ { next }

{ print }
# No exception may pass through the library: see unwind.c. 155 is the encoding that compact
# unwinding tables need, an indirect relative address of 4 bytes.
/^\t\.cfi_startproc/ { print "\t.cfi_personality\t155, _shims_personality" }
