"""Formats all figures of a run as Markdown tables."""

from contenders import is_ours
from figures import is_thread_safe, measured, of_measure, text_of

BARE_LOOPS = {
    "libmulticast": "bare loop in a library",
    "libmulticast, static": "bare loop in the executable",
}


def tables(results):
    return "\n\n".join(table(results, measure) for measure in measured(results))


def missing(results):
    return "Not measured: " + "; ".join(results["missing"]) + "."


def table(results, measure):
    found = of_measure(results, measure)
    reference = next((name for name in found if is_ours(name)), None)
    better = "Lower" if measure.lower_is_better else "Higher"
    note = f"{better} is better; {measure.statistic} of all repetitions"
    if reference:
        note += f"; in parentheses the ratio to {reference}"
    columns = sorted({parameter for points in found.values() for parameter in points})
    heads = [f"{parameter:,}" for parameter in columns]
    if len(columns) == 1:
        heads = [""]
    lines = [f"### {measure.title}\n", f"{note}. An asterisk means: not thread-safe.\n",
             row([measure.parameter] + heads), row(["---"] + ["--:"] * len(columns))]
    for name, points in found.items():
        marked = name if is_thread_safe(results, name) else name + " *"
        lines.append(row([marked] + [
            "too slow" if [measure.name, name, column] in results["too_slow"]
            else cell(measure, points, found.get(reference), column) for column in columns]))
    for ours, bare in BARE_LOOPS.items():
        if ours in found and bare in found:
            lines.append(row([f"{ours} / {bare}"] + [ratio(found[ours], found[bare], column)
                                                     for column in columns]))
    return "\n".join(lines)


def row(cells):
    return f"| {' | '.join(cells)} |"


def cell(measure, points, reference, column):
    if column not in points:
        return ""
    return f"{text_of(measure, points[column])} ({ratio(points, reference or {}, column)})"


def ratio(points, reference, column):
    if not reference.get(column) or column not in points:
        return "–"
    return f"{points[column] / reference[column]:.3g}x"
