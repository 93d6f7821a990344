"""What the studies share: the command, tables as CSV, figures as SVG, and named numbers."""

import csv
import json
import math
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Study:
    """One paper's study: runs the command in a folder of its own and keeps what comes out of it.

    `numbers` maps "paper.what.board" to a value; docs/reproduction.md is written from them. Everything that the command says
    in these studies is simulated or comes from recorded data (`recorded`); nothing is measured.
    """

    def __init__(self, name, ergotune, output):
        self.name, self.program = name, ergotune
        self.output = pathlib.Path(output) / name
        self.output.mkdir(parents=True, exist_ok=True)
        self.numbers = {}

    def ergotune(self, *arguments):
        """A verb's JSON document. Raises RuntimeError with the command's words when it fails."""
        done = subprocess.run([self.program, *map(str, arguments), "--json"], capture_output=True, text=True, cwd=self.output)
        if done.returncode:
            raise RuntimeError(f"ergotune {' '.join(map(str, arguments))}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def problem(self, name, text):
        """A problem file in the study's folder."""
        file = self.output / f"{name}.toml"
        file.write_text(text)
        return file

    def everything(self, problem, board):
        """Every configuration of a problem on a simulated board: rows of parameters, time (s) and energy (J)."""
        store = self.output / f"{pathlib.Path(problem).stem}-{board}.db"
        store.unlink(missing_ok=True)
        self.ergotune("tune", problem, "--device", f"sim:{board}", "--strategy", "brute_force", "--no-confirm", "-q", "--store", store)
        table = self.output / f"{store.stem}.csv"
        self.ergotune("export", store, "--format", "csv", "-o", table)
        with open(table, newline="") as file:
            rows = [{name: number(text) for name, text in row.items()} for row in csv.DictReader(file)]
        return store, [row for row in rows if isinstance(row["time"], float) and isinstance(row["energy"], float)]

    def note(self, **numbers):
        """Numbers by name, dots written as double underscores."""
        self.numbers.update({f"{self.name}.{name.replace('__', '.')}": value for name, value in numbers.items()})

    def table(self, name, rows):
        """Rows (dictionaries with the same keys) as CSV."""
        with open(self.output / f"{name}.csv", "w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)

    def figure(self, name, title, x, y, series):
        """Points or lines as SVG: `series` maps a label to (list of (x, y), "points" or "line")."""
        (self.output / f"{name}.svg").write_text(svg(title, x, y, series))


def number(text):
    """What a cell of CSV holds: a number where it is one."""
    try:
        return float(text)
    except ValueError:
        return text


def shared_data():
    """The folder of recorded data, or None."""
    for folder in (os.environ.get("ERGOTUNE_SHARED_DATA"), ROOT.parent / "shared" / "data"):
        if folder and pathlib.Path(folder).is_dir():
            return pathlib.Path(folder)
    return None


def percent_above(value, reference):
    return 100 * (value / reference - 1)


def mean_and_deviation(values):
    mean = sum(values) / len(values)
    return mean, math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))


COLOURS = ["#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf", "#8c564b", "#7f7f7f"]


def nice_ticks(low, high):
    step = 10 ** math.floor(math.log10((high - low) or 1))
    while (high - low) / step < 4:
        step /= 2
    return [i * step for i in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)]


def svg(title, x_name, y_name, series):
    points = [p for values, _ in series.values() for p in values]
    (x0, x1), (y0, y1) = ((min(p[i] for p in points), max(p[i] for p in points)) for i in (0, 1))
    x1, y1 = (x1 if x1 > x0 else x0 + 1), (y1 if y1 > y0 else y0 + 1)
    y0 -= 0.05 * (y1 - y0)
    y1 += 0.05 * (y1 - y0)
    place = lambda p: (60 + 520 * (p[0] - x0) / (x1 - x0), 320 - 280 * (p[1] - y0) / (y1 - y0))
    out = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 380" font-family="sans-serif" font-size="12">',
           f'<text x="60" y="24" font-size="14">{title}</text>',
           '<rect x="60" y="40" width="520" height="280" fill="none" stroke="#999"/>',
           f'<text x="320" y="365" text-anchor="middle">{x_name}</text>',
           f'<text x="16" y="180" text-anchor="middle" transform="rotate(-90 16 180)">{y_name}</text>']
    for tick in nice_ticks(x0, x1):
        out.append(f'<text x="{place((tick, y0))[0]:.1f}" y="338" text-anchor="middle">{tick:g}</text>')
    for tick in nice_ticks(y0, y1):
        out.append(f'<text x="54" y="{place((x0, tick))[1] + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for i, (label, (values, kind)) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        placed = [place(p) for p in values]
        if kind == "line":
            path = " ".join(f"{a:.1f},{b:.1f}" for a, b in placed)
            out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        else:
            out += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="2" fill="{colour}" fill-opacity="0.6"/>' for a, b in placed]
        out.append(f'<text x="592" y="{54 + 18 * i}" fill="{colour}">{label}</text>')
    return "\n".join(out + ["</svg>\n"])
