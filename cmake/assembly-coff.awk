# Changes the assembly for Windows that Swift's clang has written, so that other versions of clang
# and GNU's assembler accept it, too: awk -f assembly-coff.awk IN >OUT

# GNU's assembler does not know the flags of these sections. The library needs none of them.
/^\t\.(section|text|data|bss)/ { dropping = /\.(drectve|debug\$S|swift1_autolink_entries)/ }
# These are tables for the exception handler, which reads none.
/^\t\.section\t\.xdata\$/ { dropping = 1 }
dropping { next }
/^\t\.(addrsig|file|seh_handlerdata|seh_startepilogue|seh_endepilogue)/ { next }

# After the flags, LLVM writes how the linker treats copies of the section, a symbol, and a number.
# For GNU's assembler, a directive after the first mention of the section says how copies are
# treated, and the names of sections that must stay separate have to differ.
/^\t\.section\t[^"]*"[a-z]*",/ {
  split($0, part, ",")
  if (part[3] != "associative" && part[1] !~ /\$/) part[1] = part[1] "$" part[4]
  print part[1] "," part[2]
  if (part[3] != "associative" && !(part[1] in seen)) print "\t.linkonce\t" part[3]
  seen[part[1]]
  next
}

# The names of some constants are made from texts that contain newlines, about which GNU's assembler
# warns.
/\\n/ && !/^\t\.asci[iz]/ { gsub(/\\n/, "|") }
{ print }
