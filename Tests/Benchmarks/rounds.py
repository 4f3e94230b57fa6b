#!/usr/bin/env python3
"""Runs the programs in several rounds and writes the results to results.json."""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import machine
from contenders import is_known
from measures import MEASURES, is_better

# Google Benchmark shuffles the repetitions of one program within a round. Because there are several
# rounds, a slow minute affects all programs rather than one.
FULL = {"rounds": 3, "repetitions": 3, "min_time": 0.005}
QUICK = {"rounds": 1, "repetitions": 1, "min_time": 0.0001}

NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
PLACEMENT = re.compile(r"(bare loop .*) \d")


def main():
    arguments = parse()
    plan = {**(QUICK if arguments.quick else FULL), "only": arguments.only}
    programs = selected(arguments.build, arguments.quick, arguments.only)
    runs, contexts = run_rounds(programs, plan)
    results = {
        "machine": machine.describe(arguments.build),
        "run": {"complete": not (arguments.quick or arguments.only), **plan},
        "peers": machine.peer_versions(arguments.build),
        "missing": told(contexts, "missing_peers", "; ")
        + told(contexts, "missing_libraries", "; "),
        "not_thread_safe": told(contexts, "not_thread_safe", ";"),
        "too_slow": too_slow(runs),
        "figures": figures([run for run in runs if not run.get("error_occurred")]),
    }
    if arguments.add:
        results = added_to(json.loads((arguments.output / "results.json").read_text()), results)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "results.json").write_text(text_of(results) + "\n")


def added_to(before, results):
    """Replaces measures in earlier results with new measures. A measure is replaced as a whole,
    because only figures from the same run are comparable."""
    for key in ("cpu", "cores", "virtual", "c++"):
        if before["machine"][key] != results["machine"][key]:
            sys.exit(f"the earlier results are of another {key}: {before['machine'][key]}")
    before["figures"].update(results["figures"])
    dates = dict.fromkeys(results["figures"], results["machine"]["date"])
    return {**before, "added": {**before.get("added", {}), **dates}}


def text_of(value, depth=3, indent=""):
    """Formats JSON with one line for each contender of each measure."""
    if depth == 0 or not isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    inner = indent + " "
    lines = [
        f"{inner}{json.dumps(key, ensure_ascii=False)}: {text_of(each, depth - 1, inner)}"
        for key, each in value.items()
    ]
    return "{\n" + ",\n".join(lines) + f"\n{indent}}}"


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=Path, help="the directory in which the programs were built")
    parser.add_argument("output", type=Path, help="the directory for results.json")
    parser.add_argument("--quick", action="store_true", help="run each contender once and briefly")
    parser.add_argument("--only", help="a part of the names of benchmarks, or a program's name")
    parser.add_argument("--add", action="store_true",
                        help="add the measures to the results that are in `output`")
    return parser.parse_args()


# ---- What to run ---------------------------------------------------------------------------------


def selected(build, quick, only):
    """Returns a dictionary program -> (the benchmarks to run, whether these are all that the
    program has)."""
    programs, listed_measures = {}, set()
    for source in sorted((Path(__file__).parent / "Questions").glob("*.cpp")):
        program = build / source.stem
        if source.stem == "question":
            continue
        listed = benchmark(program, "--benchmark_list_tests=true").split("\n")
        names = [name for name in listed if name]
        check_names(source.stem, names)
        wanted = names if only in (None, source.stem) else [n for n in names if only in n]
        if quick:
            wanted = smallest_two(wanted)
        if wanted:
            programs[program] = (wanted, len(wanted) == len(names))
        listed_measures |= {split(name)[0] for name in names}
    lost = {measure.name for measure in MEASURES} - listed_measures
    if lost:
        sys.exit(f"measures.py has measures that no program measures: {sorted(lost)}")
    if not programs:
        sys.exit(f"No benchmark has {only!r} in its name.")
    return programs


def check_names(program, names):
    measures = {split(name)[0] for name in names} - {measure.name for measure in MEASURES}
    if measures:
        sys.exit(f"{program} measures what measures.py does not have: {sorted(measures)}")
    contenders = {name for name in (split(n)[1] for n in names) if not is_known(name)}
    if contenders:
        sys.exit(f"{program} has contenders that contenders.py does not: {sorted(contenders)}")


def smallest_two(names):
    """Selects the benchmarks with the two smallest parameters of each contender and measure, which
    suffice to check that everything runs."""
    grouped = defaultdict(list)
    for name in names:
        grouped[split(name)[:2]].append(name)
    return [n for group in grouped.values() for n in sorted(group, key=lambda n: split(n)[2])[:2]]


def split(name):
    """Returns the parts of `measure/contender/parameter`, without the suffixes of Google
    Benchmark."""
    measure, contender, parameter = name.split("/")[:3]
    return measure, contender, int(parameter)


# ---- Running -------------------------------------------------------------------------------------


def run_rounds(programs, plan):
    """Runs all rounds. Returns all repetitions of all benchmarks, and the contexts that the
    programs report."""
    runs, contexts = [], []
    began, steps = time.monotonic(), plan["rounds"] * len(programs)
    for step in range(steps):
        program, (names, is_all) = list(programs.items())[step % len(programs)]
        minutes = (time.monotonic() - began) / 60
        print(
            f"[{step + 1}/{steps}] round {step // len(programs) + 1}, {program.name}:"
            f" {len(names)} benchmarks, {minutes:.1f} minutes so far",
            file=sys.stderr,
        )
        with tempfile.NamedTemporaryFile(suffix=".json") as out:
            benchmark(
                program,
                f"--benchmark_out={out.name}",
                "--benchmark_enable_random_interleaving=true",
                f"--benchmark_repetitions={plan['repetitions']}",
                f"--benchmark_min_time={plan['min_time']}",
                *([] if is_all else [f"--benchmark_filter={pattern(names)}"]),
            )
            output = json.load(out)
        contexts.append(output["context"])
        runs += [run for run in output["benchmarks"] if run["run_type"] == "iteration"]
    return runs, contexts


def told(contexts, key, separator):
    """Returns the names that the programs report under this key, without duplicates."""
    names = (name for context in contexts for name in context.get(key, "").split(separator) if name)
    return list(dict.fromkeys(PLACEMENT.sub(r"\1", name) for name in names))


def benchmark(program, *options):
    done = subprocess.run([program, *options], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{program.name} failed ({done.returncode}):\n{done.stdout}\n{done.stderr}")
    return done.stdout


def pattern(names):
    escaped = (re.sub(r"[][.*+?^${}()|\\]", r"\\\g<0>", name) for name in names)
    return f"^({'|'.join(escaped)})$"


# ---- Figures -------------------------------------------------------------------------------------


def too_slow(runs):
    """Returns the benchmarks that the programs report as too slow. Any other error ends this
    script."""
    given_up = set()
    for run in runs:
        if run.get("error_occurred"):
            if not run["error_message"].startswith("too slow"):
                sys.exit(f"{run['run_name']}: {run['error_message']}")
            given_up.add(split(run["run_name"]))
    return sorted(given_up)


def figures(runs):
    """Returns a dictionary measure -> contender -> parameter -> best and median of all
    repetitions."""
    samples = defaultdict(list)
    for run in runs:
        name, contender, parameter = split(run["run_name"])
        for measure in MEASURES:
            if measure.name == name:
                # Some counters exist only for certain parameters.
                if measure.figure in run:
                    samples[measure, contender, parameter].append(sample(run, measure.figure))

    ran = {split(run["run_name"])[0] for run in runs}
    for measure in MEASURES:
        if measure.name in ran and not any(key[0] == measure for key in samples):
            sys.exit(f"{measure.name} has no {measure.figure}")

    found = {}
    for (measure, contender, parameter), values in samples.items():
        best = min(values) if measure.lower_is_better else max(values)
        here = {"best": rounded(best), "median": rounded(statistics.median(values))}
        of_measure = found.setdefault(measure.key, {})
        of_contender = of_measure.setdefault(PLACEMENT.sub(r"\1", contender), {})
        of_contender[str(parameter)] = better(measure, of_contender.get(str(parameter)), here)
    return found


def sample(run, figure):
    return run[figure] * (NANOSECONDS[run["time_unit"]] if figure == "real_time" else 1)


def better(measure, one, other):
    """Combines the figures of two copies of the bare loop by choosing the better figure of each
    kind."""
    if one is None:
        return other
    return {
        kind: one[kind] if is_better(measure, one[kind], other[kind]) else other[kind]
        for kind in one
    }


def rounded(value):
    return float(f"{value:.5g}")


if __name__ == "__main__":
    main()
