"""Builds two versions of the library, times them alternately in one process, and prints a table."""

import argparse
import hashlib
import json
import shutil
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

import machine
from figures import text_of
from measures import Measure
from report import place
from tables import row

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SIZES = [Measure("code and constants", "", "", unit="bytes"),
         Measure("stripped file", "", "", unit="bytes")]
NOTE = """\
Each row compares the best of many short slices, in which the libraries take turns; where several
threads take part, the median. The smallest and the largest ratio of the processes are in
parentheses: a smaller difference may be the machine's. The bare loop is the best of four in a
library of its own."""


def main():
    arguments = parse()
    arguments.build.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        # Copy the files, because a library that is compared with itself would otherwise be loaded
        # only once.
        libraries = [Path(folder) / "libold.so", Path(folder) / "libnew.so"]
        for named, copy in zip((arguments.old, arguments.new), libraries):
            shutil.copy(library(named, arguments.build), copy)
        program = compiled(Path(folder))
        found = compared(program, libraries, arguments)
    hardware = machine.hardware()
    if arguments.json:
        described = {"machine": hardware, "old": arguments.old, "new": arguments.new,
                     "rows": {measure.name: figures for measure, figures in found.items()}}
        arguments.json.write_text(json.dumps(described, indent=1) + "\n")
    print(f"{arguments.new} (new) compared with {arguments.old} (old). Below 1: the new one is faster or"
          f" smaller.\n\n{table(found)}\n\n{NOTE}\n\n{place({'machine': hardware})}")


def parse():
    parser = argparse.ArgumentParser(
        prog="Tests/Benchmarks/compare", description=__doc__, epilog="""
OLD and NEW are commits of this repository, archives of releases (.tar.xz, .tar.gz), which are
built without Swift, or shared libraries that are built already. Run nothing else on the machine
meanwhile. The exit status is 0 whatever the figures are: no machine is quiet enough to fail by
them.""")
    parser.add_argument("old", metavar="OLD")
    parser.add_argument("new", metavar="NEW")
    parser.add_argument("--rows", metavar="TEXT", default="",
                        help="only rows that have TEXT in their name, such as invoke")
    parser.add_argument("--seconds", type=float, default=4,
                        help="how long each row is measured in all (default: 4)")
    parser.add_argument("--rounds", type=int, default=10, metavar="N",
                        help="in how many processes, in each of which both libraries are at other"
                             " addresses (default: 10)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures to FILE")
    parser.add_argument("--build", type=Path, metavar="DIR", default=ROOT / "build/compare",
                        help="where builds are, and stay (default: build/compare)")
    return parser.parse_args()


def tell(text):
    print(text, file=sys.stderr, flush=True)


# ---- Building ------------------------------------------------------------------------------------


def run(*command):
    """Returns the output of a command. If the command fails, prints its output and exits."""
    done = subprocess.run([str(each) for each in command], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def library(named, build):
    """Returns the path of a shared library. If `named` is an archive or a commit, builds it."""
    file = Path(named)
    if not file.is_file():
        commit = machine.first_line("git", "-C", ROOT, "rev-parse", "--verify", "--quiet",
                                    f"{named}^{{commit}}")
        if not commit:
            sys.exit(f"{named} is neither a file nor a commit of this repository.")
        return built(named, build / commit[:16], [], lambda archive: run(
            "git", "-C", ROOT, "archive", "--format=tar", f"--output={archive}", commit))
    if not tarfile.is_tarfile(file):
        return file
    content = hashlib.sha256(file.read_bytes()).hexdigest()
    return built(named, build / content[:16], ["-DMULTICAST_SWIFTC=OFF"],
                 lambda archive: shutil.copy(file, archive))


def built(named, folder, options, fetch):
    """Returns the library in a folder. Unless an earlier run has already built it, builds it from
    the archive that `fetch` writes."""
    made = folder / "libmulticast.so"
    if made.is_file():
        return made
    tell(f"building {named} in {folder}: about a minute")
    sources, archive = folder / "sources", folder / "archive.tar"
    shutil.rmtree(folder, ignore_errors=True)
    sources.mkdir(parents=True)
    fetch(archive)
    run("tar", "-xf", archive, "-C", sources)
    archive.unlink()
    # A release archive contains a single folder with everything in it.
    if not (sources / "CMakeLists.txt").is_file():
        sources = next(sources.glob("*/CMakeLists.txt")).parent
    run("nice", "cmake", "-S", sources, "-B", folder / "build", "-DCMAKE_BUILD_TYPE=Release",
        "-DMULTICAST_BUILD_TESTS=OFF", "-DMULTICAST_BUILD_EXAMPLES=OFF", "-DMULTICAST_LOCAL=OFF",
        *options)
    run("nice", "cmake", "--build", folder / "build", "--parallel", "2")
    shutil.copy(folder / "build/libmulticast.so", made)
    return made


def compiled(folder):
    """Compiles the measuring program and the library with the bare loops."""
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}",
             f"-I{HERE / 'Contenders'}"]
    work = HERE / "Contenders/work.c"
    run("gcc", *flags, "-DIN_LIBRARY", "-shared", "-fPIC", work, "-o", folder / "libwork.so")
    run("gcc", *flags, HERE / "Compare/compare.c", work, folder / "libwork.so",
        f"-Wl,-rpath,{folder}", "-pthread", "-ldl", "-o", folder / "compare")
    return folder / "compare"


# ---- Measuring -----------------------------------------------------------------------------------


def compared(program, libraries, arguments):
    """Returns a dictionary that maps each measure to a row of the table: the figures of the old
    library, the new library and, if there is one, the bare loop, and the ratio with its spread."""
    listed = (line.split("\t") for line in run(program).splitlines())
    measures = {number: Measure(name, "", "", unit=unit, statistic=statistic)
                for number, (name, unit, statistic) in enumerate(listed)
                if arguments.rows in name}
    sizes = [measure for measure in SIZES if arguments.rows in measure.name]
    if not measures and not sizes:
        sys.exit(f"No row has {arguments.rows!r} in its name.")
    samples = {measure: [] for measure in measures.values()}
    began = time.monotonic()
    rounds = arguments.rounds if measures else 0
    for number in range(rounds):
        tell(f"[{number + 1}/{rounds}] {len(measures)} rows, {time.monotonic() - began:.0f} s so far")
        for index, measure in measures.items():
            if measure.unit == "bytes" and samples[measure]:
                continue  # this figure is the same in each process
            # Alternate the order in which the libraries are loaded.
            order = (0, 1) if number % 2 == 0 else (1, 0)
            printed = run(program, index, arguments.seconds / rounds, *(libraries[i] for i in order))
            figures = [float(word) for word in printed.split()]
            samples[measure].append([figures[i] for i in order] + figures[2:])
    found = {measure: summary(measure, of_measure) for measure, of_measure in samples.items()}
    for measure in sizes:
        found[measure] = summary(measure, [[size(each, measure) for each in libraries]])
    return found


def summary(measure, samples):
    statistic = min if measure.statistic == "best" else statistics.median
    old, new, *bare = (statistic(column) for column in zip(*samples))
    ratios = [sample[1] / sample[0] for sample in samples]
    return {"old": old, "new": new, "ratio": new / old, "least": min(ratios), "most": max(ratios),
            **({"bare": bare[0]} if bare else {})}


def size(file, measure):
    """Returns the size in bytes of the machine code and constants, or of the stripped file."""
    if measure.name == "code and constants":
        sections = (line.split() for line in run("size", "-A", file).splitlines())
        return sum(int(each[1]) for each in sections if each and each[0] in (".text", ".rodata"))
    stripped = file.with_suffix(".stripped")
    run("strip", "-o", stripped, file)
    return stripped.stat().st_size


# ---- The table -----------------------------------------------------------------------------------


def table(found):
    lines = [row(["", "old", "new", "new / old", "bare loop", "old / bare", "new / bare"]),
             row(["---"] + ["--:"] * 6)]
    for measure, figures in found.items():
        spread = f"{figures['ratio']:.3f} ({figures['least']:.3f}–{figures['most']:.3f})"
        cells = [measure.name, text_of(measure, figures["old"]), text_of(measure, figures["new"]),
                 spread if figures["least"] < figures["most"] else f"{figures['ratio']:.3f}"]
        bare = figures.get("bare")
        cells += [text_of(measure, bare), f"{figures['old'] / bare:.3f}",
                  f"{figures['new'] / bare:.3f}"] if bare else [""] * 3
        lines.append(row(cells))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
