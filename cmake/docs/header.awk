# What Doxygen reads instead of a header: the head as the main page, the sections as groups, and the
# labelled lines of comment blocks ("Cost: ...") as paragraphs with a title.

FNR == 1 {
  file = FILENAME
  sub(/.*\//, "", file)
  own = file
  sub(/[.]h$/, "", own)
  names = toupper(own) "_[A-Z_]*[A-Z]|" own "_[a-z_]+\\(\\)"
}

# ---- The head ------------------------------------------------------------------------------------

/^\/\* libmulticast[-a-z]*: / {
  brief = $0
  sub(/^\/\* libmulticast[-a-z]*: */, "", brief)
  library = $2
  sub(/:/, "", library)
  print "/** @file " file " @brief " toupper(substr(brief, 1, 1)) substr(brief, 2) " */"
  print "/** @mainpage " library
  print " *"
  print " * " toupper(substr(brief, 1, 1)) substr(brief, 2)
  is_head = 1
  next
}
# A label with its text, which is indented.
is_head && /^ \* [A-Za-z][a-z]+( [a-z]+)?   +[^ ]/ {
  match($0, /   +/)
  $0 = " * @topic{" substr($0, 4, RSTART - 4) "} " substr($0, RSTART + RLENGTH)
}
is_head && /^ \*              / { sub(/^ \*              /, " * ") }
is_head && /^ \* [A-Z][^.]*:$/ { $0 = " * **" substr($0, 4) "**" }
is_head && / \*\/$/ { is_head = 0 }

# ---- Sections ------------------------------------------------------------------------------------

/^\/\* ---- [0-9]+[.] / {
  title = $0
  sub(/^\/\* ---- /, "", title)
  sub(/ -+ \*\/$/, "", title)
  number = title
  sub(/[.].*/, "", number)
  if (number > 1) print "/** @} */"
  print "/** @defgroup section" number " " title
  $0 = " * @{ */"
  sections = number
}

# ---- Comment blocks ------------------------------------------------------------------------------

/^ *\/\/\/ (Ownership|Threads|Reentry|Cost|Real time): / {
  match($0, /[A-Z][a-z]+( time)?: +/)
  label = substr($0, RSTART, RLENGTH)
  text = substr($0, RSTART + RLENGTH)
  sub(/: +/, "", label)
  $0 = substr($0, 1, RSTART - 1) "@topic{" label "} " toupper(substr(text, 1, 1)) substr(text, 2)
}

# Doxygen links the names of this header, and warns where there is no such name.
/^ *\/\/\/|\/\/\/</ || (is_head && !/^ \*     /) {
  start = index($0, "///")
  code = substr($0, 1, start - (start > 0))
  text = substr($0, length(code) + 1)
  gsub(names, "#&", text)
  gsub(/#MULTICAST_INTERNAL_CHECKS/, "MULTICAST_INTERNAL_CHECKS", text)
  gsub(/"#/, "\"", text)
  $0 = code text
}

{ print }

END { if (sections) print "/** @} */" }
