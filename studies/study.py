"""What the studies share: the command, tables as CSV, figures as SVG, and named numbers."""

import copy
import csv
import json
import math
import pathlib
import subprocess
import sys
import time

import figures

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECORDED = ROOT / "tests/data/recorded"


class Mistake(Exception):
    """What its user can mend: the command's exit code 2."""


class Study:
    """One paper's study: runs the command in a folder of its own and keeps what comes out of it.

    `numbers` maps "paper.what.GPU" to a value; docs/reproduction.md is written from them. Without a device everything that the
    command says is simulated or comes from recorded data (`recorded`). With one (`device`, for example "cuda:0") the study runs
    what needs no clocks on it, and its numbers are "paper.measured.what"; so they are of a `store` that was measured elsewhere.
    """

    def __init__(self, name, ergotune, output, device=None, store=None, say=None):
        self.name, self.program, self.device, self.store = name, ergotune, device, store
        self.measured = bool(device or store)
        self.part = "measured." if self.measured else ""
        self.provenance = "measured" if self.measured else "simulated"
        self.output = pathlib.Path(output) / name / ("measured" if self.measured else "")
        self.output.mkdir(parents=True, exist_ok=True)
        self.numbers, self.searched = {}, set()
        self.say = say or (lambda text: None)

    def of_measurement(self, name):
        """The same study for measurements of ours that are in the repository: numbers "paper.NAME.what", files in a folder NAME."""
        kept = copy.copy(self)
        kept.part, kept.output, kept.provenance = f"{name}.", self.output / name, "measured"
        kept.output.mkdir(exist_ok=True)
        return kept

    def go_through(self, parts):
        """Runs what a study consists of, (what it is, function of the study), and says where it is."""
        begun = time.monotonic()
        for i, (title, part) in enumerate(parts):
            self.say(f"{self.name}: {title} ({i + 1} of {len(parts)}, {time.monotonic() - begun:.0f} s so far)")
            try:
                part(self)
            except RuntimeError as error:
                if not self.measured:
                    raise
                self.say(f"{self.name}: {title} failed: {error}")  # what a GPU cannot do leaves the rest

    def ergotune(self, *arguments):
        """A verb's JSON document. Raises RuntimeError with the command's words when it fails, Mistake where its user can mend that."""
        done = subprocess.run([self.program, *map(str, arguments), "--json"], capture_output=True, text=True, cwd=self.output)
        if done.returncode:
            words = f"ergotune {' '.join(map(str, arguments))}: {done.stderr.strip() or done.stdout.strip()[-500:]}"
            raise Mistake(words) if done.returncode == 2 else RuntimeError(words)
        return json.loads(done.stdout)

    def measure(self, problem, configuration=None, *options):
        """One configuration on the study's device, with energy; None, with a note, where it does not work."""
        chosen = ("--config", json.dumps(configuration)) if configuration else ()
        try:
            return self.ergotune("measure", problem, "--device", self.device, "--objective", "energy", *chosen, *options)
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return None

    def problem(self, name, text):
        """A problem file in the study's folder."""
        file = self.output / f"{name}.toml"
        file.write_text(text)
        return file

    def everything(self, problem, gpu):
        """Every configuration of a problem on a simulated GPU: the store, and rows of parameters, time (s), energy (J) ..."""
        store = self.output / f"{pathlib.Path(problem).stem}-{gpu}.db"
        store.unlink(missing_ok=True)
        self.ergotune("tune", problem, "--device", f"sim:{gpu}", "--strategy", "brute_force", "--no-confirm", "-q", "--store", store)
        return store, self.rows(store)

    def recorded(self, *parts):
        """A recorded file. Raises RuntimeError, which ends the study with exit code 1, where it is not there."""
        file = RECORDED.joinpath(*parts)
        if not file.is_file():
            raise RuntimeError(f"{self.name} needs {file}, which is not there: tests/data/recorded/README.md names its source")
        return file

    def rows(self, store):
        """What a store holds, where time and energy are known."""
        table = self.output / f"{store.stem}.csv"
        self.ergotune("export", store, "--format", "csv", "-o", table)
        with open(table, newline="") as file:
            rows = [{name: number(text) for name, text in row.items()} for row in csv.DictReader(file)]
        return [row for row in rows if isinstance(row["time"], float) and isinstance(row["energy"], float)]

    def note(self, **numbers):
        """Numbers by name, dots written as double underscores; None is none."""
        named = {f"{self.name}.{self.part}{name.replace('__', '.')}": value for name, value in numbers.items() if value is not None}
        self.numbers.update(named)
        return named

    def note_searched(self, **numbers):
        """Numbers that depend on what a search chose to measure: another version of it may give others."""
        self.searched.update(self.note(**numbers))

    def table(self, name, rows):
        """Rows (dictionaries with the same keys) as CSV; each says where its numbers come from."""
        if not rows:
            raise RuntimeError(f"{name}: nothing of it worked")
        rows = [row if "provenance" in row else row | {"provenance": self.provenance} for row in rows]
        with open(self.output / f"{name}.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    def figure(self, name, title, x, y, series, levels=(), marks=None):
        """Points or lines as SVG: `series` maps a label to (list of (x, y), "points", "triangles" or "line"); see figures.plot."""
        (self.output / f"{name}.svg").write_text(figures.plot(self.titled(title), x, y, series, levels, marks))

    def bars(self, name, title, y, groups, series):
        """Bars as SVG: `series` maps a label to a value for each of `groups`."""
        (self.output / f"{name}.svg").write_text(figures.bars(self.titled(title), y, groups, series))

    def titled(self, title):
        return title if "recorded" in title else f"{title} ({self.provenance})"


def simulated_problem(name, parameters, threads, simulation, restrictions=(), work=1000000):
    """A kernel that only simulated GPUs run, at every clock: what it costs stands in `simulation`."""
    return f"""name = "{name}"
objective = "energy"
restrictions = {json.dumps(list(restrictions))}
[parameters]
{parameters}
[execution]
core_clock_mhz = "all"
[kernel]
function = "{name}"
[kernel.source.opencl]
text = "kernel void {name}() {{}}"
[kernel.launch]
global = [{work}]
block = ["{threads}"]
[simulation]
{simulation}
registers = 32
"""


def number(text):
    """What a cell of CSV holds: a number where it is one."""
    try:
        return float(text)
    except ValueError:
        return text


def percent_above(value, reference):
    return 100 * (value / reference - 1)


def mean(values):
    return sum(values) / len(values)


def mean_and_deviation(values):
    middle = mean(values)
    return middle, math.sqrt(sum((v - middle) ** 2 for v in values) / (len(values) - 1))


def correlation(a, b):
    """Pearson's."""
    x, y = mean(a), mean(b)
    products = sum((i - x) * (j - y) for i, j in zip(a, b))
    return products / math.sqrt(sum((i - x) ** 2 for i in a) * sum((j - y) ** 2 for j in b))


def spread_percent(values):
    """Largest above least, in percent of the mean: how the papers tell repeatability."""
    return 100 * (max(values) - min(values)) / mean(values)
