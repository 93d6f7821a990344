#!/usr/bin/env python3
"""GEMM on one board of a host and on all of them: configurations a minute, the boards' factors, and the same answer.

Passes (--passes), each with one board and with all, random search with the same seed, nothing set on any board:
  time      GEMM of 4096, each configuration compiled: as many compile workers for one board as for all
  warm      GEMM of 2048 by time, everything compiled before: what the boards and the session's own loop do without compilers
  energy    GEMM of 2048 by energy
Rates are of the rows' own time stamps, from the first second on in which each board had measured. The best of each session is
measured again on the first board, in turns.
"""

import argparse
import json
import os
import pathlib
import sqlite3
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(arguments, output=None):
    """The JSON document that the command prints, kept in a file."""
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout.strip():
        sys.exit(f"{' '.join(arguments)}\nended with {done.returncode}:\n{done.stderr[-4000:]}")
    document = json.loads(done.stdout)
    if output:
        output.write_text(json.dumps(document, indent=1))
    return document


def rows_of(store):
    """(rate a minute, rows, s of compiling, s on the board, both per configuration) of the search rows."""
    connection = sqlite3.connect(store)
    rows = connection.execute("SELECT finished_at, board, compile_seconds, verify_seconds + measure_seconds FROM measurements "
                              "WHERE kind = 'search' AND board <> '' ORDER BY finished_at").fetchall()
    begins = {}
    for at, board, _, _ in rows:
        begins.setdefault(board, at)
    since = max(begins.values())
    steady = [row for row in rows if row[0] > since]
    span = max(1e-9, steady[-1][0] - since)
    return 60 * len(steady) / span, len(rows), sum(r[2] for r in rows) / len(rows), sum(r[3] for r in rows) / len(rows)


class Bench:
    def __init__(self, options):
        self.options = options
        found = run([options.ergotune, "devices", "--json"])["devices"]
        self.devices = [d["id"] for d in found if d["backend"] == options.backend]
        print(f"{len(self.devices)} boards: " + ", ".join(f"{d['id']} {d['name']}" for d in found if d["id"] in self.devices),
              f"; {options.cores} cores", flush=True)
        self.jobs = max(1, options.cores - len(self.devices))
        self.summary = {"boards": self.devices, "cores": options.cores, "seconds": options.seconds}

    def problem(self, size):
        folder = self.options.output / f"gemm{size}"
        folder.mkdir(parents=True, exist_ok=True)
        for file in (ROOT / "examples/gemm").iterdir():
            if file.is_file():
                text = file.read_bytes()
                (folder / file.name).write_bytes(text.replace(b"= 2048", b"= %d" % size) if file.suffix == ".toml" else text)
        return folder / "gemm.toml"

    def tune(self, problem, objective, devices, name, budget, more=()):
        store = self.options.output / f"boards-{name}.db"
        for suffix in ("", "-wal", "-shm"):
            pathlib.Path(str(store) + suffix).unlink(missing_ok=True)
        document = run([self.options.ergotune, "tune", str(problem), "--device", ",".join(devices), "--objective", objective,
                        "--strategy", "random", "--seed", "1", "--budget", budget, "--jobs", str(self.jobs), "--no-early-stop",
                        "--store", str(store), "--json", "--quiet", *more], self.options.output / f"boards-{name}.json")
        rate, rows, compiling, measuring = rows_of(store)
        print(f"{name}: {rows} configurations, {rate:.0f} a minute; compiling {compiling:.3f} s with {self.jobs} workers (at most "
              f"{60 * self.jobs / max(compiling, 1e-9):.0f} a minute), on the board {measuring:.4f} s (at most "
              f"{60 * len(devices) / measuring:.0f} a minute)", flush=True)
        for board in document.get("devices", []):
            factors = ", ".join(f"{q} x{f['value']:.4f} +-{196 * f['standard_error'] / f['value']:.2f} % (n {f['n']})"
                                for q, f in board.get("factors", {}).items() if q in ("time", "energy"))
            total = board["busy_seconds"] + board["idle_seconds"]
            print(f"  {board['id']}: {board['measured']} measured, {100 * board['idle_seconds'] / total:.0f} % idle; {factors}", flush=True)
        return document, rate

    def again(self, problem, objective, documents):
        """The best of each session, measured on the first board one after the other: value and standard error."""
        values = [[] for _ in documents]
        for _ in range(3):
            for document, list_ in zip(documents, values):
                measured = run([self.options.ergotune, "measure", str(problem), "--device", self.devices[0], "--objective", objective,
                                "--config", json.dumps(document["best"]["configuration"]), "--json"])
                list_.append(measured["quantities"][objective])
        summary = []
        for list_ in values:
            mean = sum(q["value"] for q in list_) / len(list_)
            own = sum(q["standard_error"] ** 2 for q in list_) ** 0.5 / len(list_)
            scatter = (sum((q["value"] - mean) ** 2 for q in list_) / (len(list_) - 1) / len(list_)) ** 0.5
            summary.append((mean, max(own, scatter)))
        return summary

    def compare(self, name, objective, problem, sessions):
        (one, one_rate), (many, many_rate) = sessions
        ratio = many_rate / one_rate
        self.summary[name] = {"ratio": ratio, "rates": [one_rate, many_rate],
                              "factors": {b["id"]: b.get("factors", {}) for b in many.get("devices", [])}}
        words = f"{name}: {ratio:.2f} times the configurations a minute of one board"
        if problem:
            (a, a_error), (b, b_error) = self.again(problem, objective, [one, many])
            away = abs(b - a) / max(1e-300, (a_error**2 + b_error**2) ** 0.5)
            words += (f"; on {self.devices[0]} the best of one board reads {a:.6g} +-{1.96 * a_error:.2g}, that of all {b:.6g} "
                      f"+-{1.96 * b_error:.2g}: {'better or within' if b <= a or away < 1.96 else 'outside'} the interval")
            self.summary[name]["best"] = [[a, a_error], [b, b_error]]
        print(words, flush=True)

    def pass_(self, name):
        budget = f"{self.options.seconds:g}s"
        if name == "warm":
            problem = self.problem(2048)
            self.tune(problem, "time", self.devices, "warm-filling", budget, ["--no-confirm"])
            count = rows_of(self.options.output / "boards-warm-filling.db")[1]
            sessions = [self.tune(problem, "time", devices, f"warm-{label}", str(most), ["--no-confirm"])
                        for label, devices, most in (("one", self.devices[:1], min(count, 800)), ("all", self.devices, count))]
            return self.compare(name, "time", None, sessions)
        problem = self.problem(4096 if name == "time" else 2048)
        sessions = [self.tune(problem, name, devices, f"{name}-{label}", budget, ["--no-cache"])
                    for label, devices in (("one", self.devices[:1]), ("all", self.devices))]
        return self.compare(name, name, problem, sessions)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ergotune", default="build/release/ergotune")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/boards"))
    parser.add_argument("--seconds", type=float, default=25, help="of each search (25)")
    parser.add_argument("--passes", default="time,warm,energy", help="which (time,warm,energy)")
    parser.add_argument("--backend", default="cuda", help="whose devices (cuda)")
    parser.add_argument("--cores", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    bench = Bench(options)
    for name in options.passes.split(","):
        bench.pass_(name)
        (options.output / "boards.json").write_text(json.dumps(bench.summary, indent=1))


if __name__ == "__main__":
    main()
