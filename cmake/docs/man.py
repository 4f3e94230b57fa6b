#!/usr/bin/env python3
"""Writes man pages from the XML that Doxygen generates from a header: one page for each function,
struct, callback and integer type with its values, and one for the whole header. The pages are
compressed as gzip -9n would compress them."""

import argparse
import gzip
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

CORE = "multicast.h"


# ---- roff ----------------------------------------------------------------------------------------

ESCAPES = {"\\": "\\e", "-": "\\-", "^": "\\(ha", "~": "\\(ti", "`": "\\(ga"}


def escaped(text):
    return "".join(ESCAPES.get(character, character) for character in text)


def line(text):
    """Returns a line of text, protected from being read as a roff request."""
    return f"\\&{text}" if text[:1] in (".", "'") else text


def bold(text):
    return f"\\fB{escaped(text)}\\fR"


def name_section(names, item):
    """Returns the section with the names and the summary that whatis and apropos show."""
    text = " ".join("".join(item.find("briefdescription").itertext()).split()).rstrip(".")
    return [".SH NAME", f"{escaped(names)} \\- {escaped(text[:1].lower() + text[1:])}"]


# ---- Doxygen's descriptions ----------------------------------------------------------------------

def inline(element):
    """Returns the content of a paragraph as roff. Blocks inside it are an error."""
    pieces = [escaped(element.text or "")]
    for child in element:
        if child.tag == "computeroutput":
            pieces.append(f"\\fB{inline(child)}\\fR")
        elif child.tag == "bold":
            pieces.append(f"\\fB{inline(child)}\\fR")
        elif child.tag == "emphasis":
            pieces.append(f"\\fI{inline(child)}\\fR")
        elif child.tag == "ref":
            pieces.append(inline(child))
        elif child.tag == "htmlonly":
            pass
        else:
            sys.exit(f"man.py does not know <{child.tag}> in a paragraph")
        pieces.append(escaped(child.tail or ""))
    return "".join(pieces)


BLOCKS = ("simplesect", "parameterlist", "itemizedlist", "orderedlist", "verbatim")


class Description:
    """A detailed description: the text, the parameters, the result, and the titled paragraphs."""

    def __init__(self, element, topics_in_text=False):
        self.text, self.parameters, self.result, self.topics, self.since = [], [], [], [], None
        self.topics_in_text = topics_in_text
        self.blocks = self.text
        for para in element:
            if para.tag != "para":
                sys.exit(f"man.py does not know <{para.tag}> in a description")
            self.paragraph(para)

    def paragraph(self, para):
        run = ElementTree.Element("run")
        run.text = para.text
        for child in para:
            if child.tag not in BLOCKS:
                run.append(child)
                continue
            self.flush(run)
            getattr(self, child.tag)(child)
            run = ElementTree.Element("run")
            run.text = child.tail
        self.flush(run)

    def flush(self, run):
        text = " ".join(inline(run).split())
        if text:
            self.blocks.append(".PP\n" + line(text))

    def within(self, blocks, paras):
        outer, self.blocks = self.blocks, blocks
        for para in paras:
            self.paragraph(para)
        self.blocks = outer
        return blocks

    def simplesect(self, element):
        paras = element.findall("para")
        kind = element.get("kind")
        if kind == "return":
            self.within(self.result, paras)
        elif kind == "par":
            title = "".join(element.find("title").itertext()).strip()
            blocks = self.within([], paras)
            if self.topics_in_text:
                self.text.append(tagged(bold(title), blocks))
            else:
                self.topics.append((title, blocks))
        elif kind == "since":
            self.since = " ".join(inline(paras[0]).split())
        else:
            sys.exit(f"man.py does not know @{kind}")

    def parameterlist(self, element):
        for item in element.findall("parameteritem"):
            name = item.findtext("parameternamelist/parametername")
            text = self.within([], item.findall("parameterdescription/para"))
            self.parameters.append((name, text))

    def itemizedlist(self, element):
        for item in element.findall("listitem"):
            blocks = self.within([], item.findall("para"))
            self.blocks.append(".IP \\(bu 2\n" + paragraph_text("\n".join(blocks)))

    orderedlist = itemizedlist

    def verbatim(self, element):
        lines = [line(escaped(text)) for text in element.text.rstrip().split("\n")]
        self.blocks.append("\n".join([".PP", ".RS 4", ".nf", *lines, ".fi", ".RE"]))


def brief(element):
    text = "".join(inline(para) for para in element.findall("briefdescription/para"))
    if not text.strip():
        # Doxygen itself does not warn about undocumented values.
        name = element.findtext("name") or element.findtext("compoundname")
        sys.exit(f"{name} is not documented")
    return " ".join(text.split())


def described(element):
    """Returns the paragraphs of a page: the summary, then the rest."""
    rest = Description(element.find("detaileddescription"))
    return [".PP\n" + line(brief(element)), *rest.text], rest


def paragraph_text(block):
    return block.removeprefix(".PP\n")


def item_text(element):
    """Returns the paragraphs of a list item. The first one begins with the summary."""
    summary, *rest = described(element)[0]
    if rest and rest[0].startswith(".PP\n"):
        summary = f"{summary} {paragraph_text(rest.pop(0))}"
    return [summary, *rest]


def tagged(name, blocks):
    """Returns a list item. Its later paragraphs are indented like the first one."""
    first, *rest = blocks
    rest = [".RS", *rest, ".RE"] if rest else []
    return "\n".join([".TP", name, paragraph_text(first), *rest])


# ---- Declarations --------------------------------------------------------------------------------

def text_of(element):
    return "".join(element.itertext()) if element is not None else ""


def joined(kind, name):
    return f"{kind}{name}" if kind.endswith("*") else f"{kind} {name}"


def declaration(member):
    """Returns the declaration of a field or typedef, whose type may be a function pointer."""
    kind = re.sub(r"(?<![* ])\(\*$", " (*", text_of(member.find("type")).replace("* (*", "*(*"))
    text = joined(kind, member.findtext("name"))
    parameters = member.findtext("argsstring") or ""
    if len(text) + len(parameters) > 60:
        parameters = parameters.replace(", ", ",\n        ").replace(")(", ")(\n        ")
    return text + parameters


def prototype(member):
    kind = re.sub(r"^(static|inline) ", "", text_of(member.find("type")))
    parameters = [(text_of(parameter.find("type")), parameter.findtext("declname"))
                  for parameter in member.findall("param")]
    start = joined(kind, member.findtext("name")) + "("
    plain = [joined(kind, name) if name else kind for kind, name in parameters]
    shown = []
    for (kind, name), text in zip(parameters, plain):
        before = text[:len(text) - len(name)] if name else text
        shown.append(f"\\fB{escaped(before)}\\fR" + (f"\\fI{name}\\fR" if name else ""))
    fits = len(start) + len(", ".join(plain)) + 2 <= 78
    separator = "\\fB,\\fR " if fits else "\\fB,\\fR\n" + " " * min(len(start), 8)
    gap = "" if fits else "\n" + " " * min(len(start), 8)
    return f"{bold(start)}{gap}{separator.join(shown)}\\fB);\\fR"


# ---- Pages ---------------------------------------------------------------------------------------

class Reference:
    def __init__(self, xml, header):
        self.xml = Path(xml)
        self.header = header
        self.groups = []
        # Collects the members of each group in the order of the header.
        for path in self.xml.glob("group__section*.xml"):
            group = self.compound(path.stem)
            number = int(re.search(r"\d+", group.findtext("compoundname")).group())
            items = [self.compound(inner.get("refid")) for inner in group.findall("innerclass")]
            items += group.findall("sectiondef/memberdef")
            items.sort(key=lambda item: int(item.find("location").get("line")))
            self.groups.append((number, group.findtext("title"), items))
        self.groups.sort(key=lambda group: group[0])
        self.file = self.compound(header.replace("_", "__").replace(".", "_8"))
        self.index = self.compound("indexpage")
        self.names = {self.name(item) for _, _, items in self.groups for item in items
                      if item.get("kind") != "define"}
        # The values of an integer type NAME are in the enumeration NAME_code. NAME's page shows them.
        self.values = {self.name(item): item for _, _, items in self.groups for item in items
                       if item.get("kind") == "enum"}
        for name in self.values:
            if name.removesuffix("_code") not in self.names - {name}:
                sys.exit(f"man.py does not know the type of the values of {name}")

    def compound(self, refid):
        return ElementTree.parse(self.xml / f"{refid}.xml").getroot().find("compounddef")

    @staticmethod
    def name(item):
        return item.findtext("name") or item.findtext("compoundname")

    def head(self, name):
        return [f'.TH "{escaped(name)}" 3 "" "libmulticast {self.version}" "libmulticast"',
                ".nh", ".ad l"]

    def see_also(self, item, name):
        words = set(re.findall(r"\bmulticast_[a-z_]+\b", "".join(item.itertext())))
        found = sorted(words & self.names - {name})
        headers = [self.header] if self.header == CORE else [self.header, CORE]
        references = [f".BR {escaped(word)} (3)" for word in [*found, *headers]]
        return [".SH SEE ALSO", *(f"{text}," for text in references[:-1]), references[-1]]

    def page(self, item):
        name, kind = self.name(item), item.get("kind")
        blocks, rest = described(item)
        synopsis, listed = getattr(self, kind)(item)
        lines = self.head(name)
        values = f"{name}_code"
        lines += name_section(f"{name}, {values}" if values in self.values else name, item)
        lines += [".SH SYNOPSIS", ".nf", bold(f"#include <{self.header}>"), ".PP", *synopsis, ".fi"]
        lines += [".SH DESCRIPTION", *blocks]
        if rest.parameters:
            lines += [".SH PARAMETERS"]
            for parameter, text in rest.parameters:
                lines.append(tagged(f"\\fI{parameter}\\fR", text))
        lines += listed
        if rest.result:
            lines += [".SH RETURN VALUE", *rest.result]
        for title, text in rest.topics:
            lines += [f".SH {title.upper()}", *text]
        if rest.since:
            lines += [".SH HISTORY", f"Since libmulticast {rest.since}."]
        return lines + self.see_also(item, name)

    # These methods return, for each kind of item, the lines of the synopsis and the list of parts.

    @staticmethod
    def function(item):
        return prototype(item).split("\n"), []

    def typedef(self, item):
        synopsis = [bold(text) for text in f"typedef {declaration(item)};".split("\n")]
        values = self.values.get(f"{self.name(item)}_code")
        if values is None:
            return synopsis, []
        more, listed = self.enum(values)
        return [*synopsis, ".PP", *more], listed

    @staticmethod
    def struct(item):
        name, fields = item.findtext("compoundname"), item.findall("sectiondef/memberdef")
        synopsis = [bold(f"typedef struct {name} {{")]
        listed = [".SH FIELDS"]
        for field in fields:
            synopsis += [bold(f"    {text}") for text in f"{declaration(field)};".split("\n")]
            listed.append(tagged(bold(field.findtext("name")), item_text(field)))
        return [*synopsis, bold(f"}} {name};")], listed

    @staticmethod
    def enum(item):
        name, values = item.findtext("name"), item.findall("enumvalue")
        synopsis = [bold(f"enum {name} {{")]
        listed = [".SH VALUES"]
        for value in values:
            text = f"{value.findtext('name')} {value.findtext('initializer').strip()}"
            synopsis.append(bold(f"    {text},"))
            listed.append(tagged(bold(text), item_text(value)))
        return [*synopsis, bold("};")], listed

    def overview(self):
        """Returns the header's page: its first comment, the items of each section, and the macros."""
        text = Description(self.index.find("detaileddescription"), topics_in_text=True)
        lines = self.head(self.header)
        names = f"{CORE}, multicast" if self.header == CORE else self.header
        lines += name_section(names, self.file)
        lines += [".SH SYNOPSIS", ".nf", bold(f"#include <{self.header}>"), ".fi"]
        lines += [".SH DESCRIPTION"]
        lines += text.text
        macros = [item for item in self.file.findall("sectiondef/memberdef")
                  if item.get("kind") == "define"]
        for _, title, items in self.groups:
            lines += [f".SH {escaped(title.upper())}"]
            for item in items:
                if item.get("kind") == "define":
                    lines.append(tagged(bold(self.name(item)), item_text(item)))
                else:
                    lines += [".TP", f".BR {escaped(self.name(item))} (3)", line(brief(item))]
        grouped = {self.name(item) for _, _, items in self.groups for item in items}
        others = [item for item in macros if self.name(item) not in grouped]
        if others:
            lines += [".SH OTHER MACROS"]
        for item in others:
            lines.append(tagged(bold(self.name(item)), item_text(item)))
        return lines

    def write(self, output, version):
        self.version = version
        output = Path(output)
        output.mkdir(parents=True, exist_ok=True)
        pages = {self.header: self.overview()}
        pages.update((self.name(item), self.page(item)) for _, _, items in self.groups
                     for item in items if item.get("kind") not in ("define", "enum"))
        links = {}
        if self.header == CORE:
            # The type `multicast` is described on the header's page, because readers who look up
            # that name want the overview.
            del pages["multicast"]
            links["multicast"] = CORE
        links.update((name, name.removesuffix("_code")) for name in self.values)
        for name, target in links.items():
            (output / f"{name}.3.gz").symlink_to(f"{target}.3.gz")
        for name, lines in pages.items():
            with open(output / f"{name}.3.gz", "wb") as file:
                with gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:
                    packed.write(("\n".join(lines) + "\n").encode("ascii"))
        return len(pages) + len(links)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("xml", help="the folder with Doxygen's XML")
    parser.add_argument("output", help="the folder for the pages, man3")
    parser.add_argument("--version", required=True, help="the library's, for the foot of each page")
    parser.add_argument("--header", default=CORE, help="its name (default: %(default)s)")
    given = parser.parse_args()
    count = Reference(given.xml, given.header).write(given.output, given.version)
    print(f"{count} man pages in {given.output}")


if __name__ == "__main__":
    main()
