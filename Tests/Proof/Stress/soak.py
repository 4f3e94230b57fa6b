"""Runs the stress program, records the resources that its process uses, and plots them."""

import csv
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

SAMPLES = 600  # in the plot
COLUMNS = {
    "resident": "resident memory, MB",
    "threads": "threads",
    "descriptors": "descriptors",
    "allocated": "allocated between rounds, by the program and the library, KB",
    "held": "held by the library between rounds, KB",
}


class Run:
    """A run of the stress program, with the byte counts that it has most recently printed."""

    def __init__(self, program, seconds):
        self.allocated = self.held = None
        self.output = []
        self.process = subprocess.Popen(
            [program, "--seconds", str(seconds)], stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stderr:
            found = re.search(r", (\d+) bytes allocated, (\d+) bytes held$", line)
            if found:
                self.allocated, self.held = (int(bytes) / 1024 for bytes in found.groups())
            else:
                self.output.append(line)

    def sample(self):
        """Returns the resources that the process is using, or None if the process has ended."""
        directory = Path(f"/proc/{self.process.pid}")
        try:
            status = (directory / "status").read_text()
            descriptors = len(os.listdir(directory / "fd"))
        except OSError:
            return None
        numbers = dict(re.findall(r"^(VmRSS|Threads):\s+(\d+)", status, re.MULTILINE))
        if "VmRSS" not in numbers:
            return None
        return {"resident": int(numbers["VmRSS"]) / 1024, "threads": int(numbers["Threads"]),
                "descriptors": descriptors, "allocated": self.allocated, "held": self.held}


def record(run, seconds):
    begin = spoken = time.monotonic()
    samples = []
    while run.process.poll() is None:
        now = time.monotonic()
        sample = run.sample()
        if sample and sample["held"] is not None:
            samples.append({"minutes": (now - begin) / 60, **sample})
            if now - spoken >= 60:
                spoken = now
                print(f"{(now - begin) / 60:4.0f} of {seconds / 60:.0f} minutes: " + ", ".join(
                    f"{name} {samples[-1][name]:.0f}" for name in COLUMNS), flush=True)
        time.sleep(max(0.05, seconds / SAMPLES))
    run.reader.join()
    return samples


def mean(samples, name, quarter):
    """Returns the mean of a column in one quarter of the run. Quarters are numbered from 0 to 3."""
    count = len(samples)
    return statistics.mean(
        sample[name] for sample in samples[count * quarter // 4:count * (quarter + 1) // 4])


def draw(samples, path):
    figure, panels = pyplot.subplots(
        len(COLUMNS), figsize=(9, 10), sharex=True, layout="constrained")
    for panel, (name, title) in zip(panels, COLUMNS.items()):
        panel.plot([s["minutes"] for s in samples], [s[name] for s in samples], linewidth=1)
        panel.set_ylim(bottom=0)
        panel.set_title(title, loc="left")
    panels[-1].set_xlabel("minutes")
    figure.savefig(path)


def main():
    seconds, build = float(sys.argv[1]) * 3600, Path(sys.argv[2])
    run = Run(str(build / "Tests" / "stress"), seconds)
    samples = record(run, seconds)
    if run.process.returncode != 0:
        sys.exit("".join(run.output) + f"The stress program ended with {run.process.returncode}.")
    if len(samples) < 8:
        sys.exit("That was too short for a judgement.")
    with open(build / "soak.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, ["minutes", *COLUMNS])
        writer.writeheader()
        writer.writerows(samples)
    draw(samples, build / "soak.svg")
    grown = []
    for name, title in COLUMNS.items():
        early, late = mean(samples, name, 1), mean(samples, name, 3)
        print(f"{title}: {early:.1f} in the second quarter of the time, {late:.1f} in the last")
        if late > early * 1.1:
            grown.append(title)
    print(build / "soak.svg")
    if grown:
        sys.exit("It has grown: " + ", ".join(grown))


main()
