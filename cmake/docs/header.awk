# What Doxygen reads instead of multicast.h: the head as the main page, the sections as groups, and
# the labelled lines of comment blocks ("Cost: ...") as paragraphs with a title.

# ---- The head ------------------------------------------------------------------------------------

/^\/\* libmulticast: / {
  brief = $0
  sub(/^\/\* libmulticast: */, "", brief)
  print "/** @file multicast.h @brief " toupper(substr(brief, 1, 1)) substr(brief, 2) " */"
  print "/** @mainpage libmulticast"
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

/^ *\/\/\/ (Ownership|Threads|Reentry|Cost): / {
  match($0, /[A-Z][a-z]+: +/)
  label = substr($0, RSTART, RLENGTH)
  text = substr($0, RSTART + RLENGTH)
  sub(/: +/, "", label)
  $0 = substr($0, 1, RSTART - 1) "@topic{" label "} " toupper(substr(text, 1, 1)) substr(text, 2)
}

# Doxygen links these names, and warns where there is no such name.
/^ *\/\/\/|\/\/\/</ || (is_head && !/^ \*     /) {
  start = index($0, "///")
  code = substr($0, 1, start - (start > 0))
  text = substr($0, length(code) + 1)
  gsub(/MULTICAST_[A-Z_]*[A-Z]|multicast_[a-z_]+\(\)/, "#&", text)
  gsub(/#MULTICAST_INTERNAL_CHECKS/, "MULTICAST_INTERNAL_CHECKS", text)
  gsub(/"#/, "\"", text)
  $0 = code text
}

{ print }

END { if (sections) print "/** @} */" }
