# Rewrites a header for Doxygen: the first comment becomes the main page, the sections become groups
# to which that page links, and labelled lines of comment blocks ("Cost: ...") become paragraphs
# with titles.

# Collects the sections, because the first comments of some headers do not list them. Also collects
# the parameters and results that comments may omit, under the rules in the first comment of
# multicast.h.
BEGIN {
  while ((getline < ARGV[1]) > 0) {
    ++at
    if (/^\/\* ---- [0-9]+[.] /) titles[$3 + 0] = section_title()
    if (/^ \* +- `[a-z_]+`[^:]*: /) read_usual_meaning()
    if (/^\/\/\//) read_comment()
    else {
      if (/^(MULTICAST_API|static inline) / || is_declared) read_declaration()
      if (!is_declared) forget_comment()
    }
  }
  close(ARGV[1])
}

# ---- What a comment leaves out -------------------------------------------------------------------

# "- `queue`, `lifetime`: the object;"
function read_usual_meaning(  meaning, names, count, i) {
  meaning = $0
  sub(/^[^:]*: /, "", meaning)
  sub(/[;.]$/, "", meaning)
  count = split(substr($0, 1, index($0, ": ")), names, "`")
  for (i = 2; i <= count; i += 2) usual[names[i]] = capital(meaning) "."
}
# Collects the `@param` and `@return` paragraphs of a comment, with their positions.
function read_comment(  tag) {
  if (match($0, /^\/\/\/ Like multicast_[a-z_]+\(\)/)) like = substr($3, 1, index($3, "(") - 1)
  if (/^\/\/\/ @param /) tag = $3
  else if (/^\/\/\/ @return /) tag = "@return"
  else if (paragraph != "" && /^\/\/\/   /) tag = paragraph
  paragraph = tag
  if (tag != "" || /^\/\/\/ (@since |[A-Z][a-z]+( time)?:   *)/) if (!place) place = at
  if (tag == "") return
  said[tag] = said[tag] (said[tag] == "" ? "" : "\n") $0
  said_lines[at]
}
function read_declaration(  name, names, count, i, text, is_complete) {
  declaration = declaration " " $0
  is_declared = !/[;{]/
  if (is_declared) return
  sub(/ *\).*/, "", declaration)
  name = substr(declaration, 1, index(declaration, "(") - 1)
  sub(/.*[ *]/, "", name)
  count = split(substr(declaration, index(declaration, "(") + 1), names, ",")
  is_complete = 1
  for (i = 1; i <= count + 1; ++i) {
    sub(/.*[ *]/, "", names[i])
    if (i > count) names[i] = "@return"
    if (names[i] == "void" || names[i] == "") continue
    text = (names[i] in said) ? said[names[i]] : ""
    if (text == "" && (like, names[i]) in known) text = known[like, names[i]]
    if (text == "" && names[i] in usual) text = "/// @param " names[i] "  " usual[names[i]]
    if (text != "" && !(names[i] in said)) is_complete = 0
    known[name, names[i]] = text
    if (text != "") added[place] = added[place] text "\n"
    delete said[names[i]]
  }
  for (i in said) added[place] = added[place] said[i] "\n"
  if (is_complete) delete added[place]
  else for (i in said_lines) replaced[i]
}
function forget_comment() {
  split("", said)
  split("", said_lines)
  place = 0
  like = paragraph = declaration = ""
}

# ---- Texts ---------------------------------------------------------------------------------------

function section_title(  title) {
  title = $0
  sub(/^\/\* ---- [0-9]+[.] /, "", title)
  sub(/ -+ \*\/$/, "", title)
  return title
}
function unlinked(text) {
  gsub(/#/, "", text)
  return text
}
function section_item(number) {
  return " * - @ref section" number " \"" number ". " titles[number] "\""
}
function capital(text) { return toupper(substr(text, 1, 1)) substr(text, 2) }

FNR == 1 {
  file = FILENAME
  sub(/.*\//, "", file)
  own = file
  is_cpp = sub(/[.]hpp$/, "", own)
  sub(/[.]h$/, "", own)
  names = toupper(own) "_[A-Z_]*[A-Z]|" own "_[a-z_]+\\(\\)"
}

FNR in added {
  count = split(added[FNR], paragraphs, "\n")
  for (i = 1; i < count; ++i) print linked(paragraphs[i])
}
FNR in replaced { next }

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
# multicast.hpp begins with the license. The other C++ headers begin with a line that describes
# them.
FNR == 1 && is_cpp && /^\/\*/ {
  print "/** @mainpage libmulticast for C++"
  is_head = 1
  next
}
FNR == 1 && is_cpp { print "/// @file"; is_head_of_part = 1; next }
# Skips specializations of std classes, which Doxygen cannot find.
is_cpp && /^\/\/\/ .*std::unordered_/, is_cpp && /^};/ { next }
is_head_of_part && /^\/\// { $0 = "/" $0 }
!/^\/\// { is_head_of_part = 0 }
is_head && /^ \* +[a-z_]+[.]hpp  +/ {
  gsub(/</, "\\<")
  part = $2
  sub(/^ \* +[a-z_.]+ +/, "")
  $0 = " * - " part ": " $0
}
is_head && is_cpp { sub(/^ \* Without them /, " * Without them  ") }
# The list of the sections.
is_head && /^ \* +[0-9]+[.] / {
  number = $2 + 0
  sub(/^ \* +[0-9]+[.] /, "")
  match($0, /   +/)
  topics[number] = substr($0, RSTART + RLENGTH)
  print section_item(number) ": " topics[number]
  is_listed = 1
  next
}
is_head && is_listed == 1 && file == "multicast.h" {
  print " *\n * @htmlonly <p>Besides: <a href=\"examples.html\">whole programs</a>,"
  print " * the headers of <a href=\"../cpp/html/index.html\">C++</a>, and the transports:"
  print " * <a href=\"../local/html/index.html\">local</a>, over"
  print " * <a href=\"../mqtt/html/index.html\">MQTT</a> and"
  print " * <a href=\"../nats/html/index.html\">NATS</a>.</p> @endhtmlonly"
  is_listed = 2
}
# Doxygen would treat a % before a word as a command.
is_head { gsub(/%XX/, "%%XX") }
# A label, followed by its indented text.
is_head && /^ \* [A-Za-z][a-z]+( [a-z]+)?   +[^ ]/ {
  match($0, /   +/)
  $0 = " * @topic{" substr($0, 4, RSTART - 4) "} " substr($0, RSTART + RLENGTH)
}
is_head && /^ \*              / { sub(/^ \*              /, " * ") }
is_head && /^ \* [A-Z][^.]*:$/ { $0 = " * **" substr($0, 4) "**" }
is_head && / \*\/$/ {
  if (!is_cpp && !is_listed) {
    print " *\n * **The sections:**"
    for (number = 1; number in titles; number++)
      print section_item(number)
  }
  if (file != "multicast.h")
    print " *\n * @htmlonly <p><a href=\"../../html/index.html\">multicast.h</a></p> @endhtmlonly"
  is_head = 0
}

# ---- Sections ------------------------------------------------------------------------------------

/^\/\* ---- [0-9]+[.] / {
  number = $3 + 0
  if (number > 1) print "/** @} */"
  print "/** @defgroup section" number " " number ". " section_title()
  if (number in topics) print " * @brief " capital(topics[number]) "."
  $0 = " * @{ */"
  sections = number
}

# ---- Comment blocks ------------------------------------------------------------------------------

/^ *\/\/\/ (Ownership|Threads|Reentry|Cost|Errors|Real time): / {
  match($0, /[A-Z][a-z]+( time)?: +/)
  label = substr($0, RSTART, RLENGTH)
  text = substr($0, RSTART + RLENGTH)
  sub(/: +/, "", label)
  $0 = substr($0, 1, RSTART - 1) "@topic{" label "} " capital(text)
}

{ print linked($0) }

END { if (sections) print "/** @} */" }

# Marks the names of this header as links for Doxygen, which warns about unknown names.
function linked(line,  start, code, text) {
  if (is_cpp || !(line ~ /^ *\/\/\/|\/\/\/</ || (is_head && line !~ /^ \*     /))) return line
  start = index(line, "///")
  code = substr(line, 1, start - (start > 0))
  text = substr(line, length(code) + 1)
  gsub(names, "#&", text)
  gsub(/#MULTICAST_INTERNAL_CHECKS/, "MULTICAST_INTERNAL_CHECKS", text)
  gsub(/"#/, "\"", text)
  while (match(text, /`[^`#]*#[^`]*`/))
    text = substr(text, 1, RSTART - 1) unlinked(substr(text, RSTART, RLENGTH)) substr(text, RSTART + RLENGTH)
  return code text
}
