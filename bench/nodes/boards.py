#!/usr/bin/env python3
"""GEMM on one board of a host and on all of them, by time and by energy.

Tells configurations a minute on each, how many times as many the boards make together, the boards' factors, and whether the
best of all boards' session lies within the interval of the single board's: the same configurations, measured again on the
first board. Nothing is set on any board.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(arguments, output=None):
    """The JSON document that the command prints, kept in a file."""
    began = time.monotonic()
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout.strip():
        sys.exit(f"{' '.join(arguments)}\nended with {done.returncode}:\n{done.stderr[-4000:]}")
    document = json.loads(done.stdout)
    document["wall_seconds"] = time.monotonic() - began
    if output:
        output.write_text(json.dumps(document, indent=1))
    return document


def tune(options, objective, devices, jobs, seconds, store, name):
    return run([options.ergotune, "tune", str(ROOT / "examples/gemm/gemm.toml"), "--device", ",".join(devices), "--objective",
                objective, "--strategy", options.strategy, "--seed", "1", "--budget", f"{seconds}s", "--jobs", str(jobs), "--no-cache",
                "--no-early-stop",
                "--store", str(store), "--json", "--quiet"], options.output / f"boards-{name}.json")


def rate(document, seconds):
    """Configurations a minute over the search itself; confirming comes after it."""
    return 60 * document["evaluated"] / seconds


def best_on_first(options, objective, device, documents, store):
    """The best of each session, measured again on one board one after the other: value and standard error."""
    values = []
    for round_ in range(3):
        for position, document in enumerate(documents):
            configuration = json.dumps(document["best"]["configuration"])
            measured = run([options.ergotune, "measure", str(ROOT / "examples/gemm/gemm.toml"), "--device", device, "--objective",
                            objective, "--config", configuration, "--json"])
            if position >= len(values):
                values.append([])
            values[position].append(measured["quantities"][objective])
    summary = []
    for list_ in values:
        mean = sum(q["value"] for q in list_) / len(list_)
        own = sum(q["standard_error"] ** 2 for q in list_) ** 0.5 / len(list_)
        scatter = (sum((q["value"] - mean) ** 2 for q in list_) / (len(list_) - 1) / len(list_)) ** 0.5
        summary.append((mean, max(own, scatter)))
    return summary


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ergotune", default="build/release/ergotune")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/boards"))
    parser.add_argument("--seconds", type=float, default=25, help="of each of the four searches (25)")
    parser.add_argument("--backend", default="cuda", help="whose devices (cuda)")
    parser.add_argument("--strategy", default="random", help="random asks for the same on one board and on many (random)")
    parser.add_argument("--cores", type=int, default=len(__import__("os").sched_getaffinity(0)))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    found = run([options.ergotune, "devices", "--json"])["devices"]
    devices = [d["id"] for d in found if d["backend"] == options.backend]
    print(f"{len(devices)} boards: " + ", ".join(f"{d['id']} {d['name']}" for d in found if d["id"] in devices), flush=True)
    summary = {"boards": devices, "cores": options.cores, "seconds": options.seconds}
    for objective in ("time", "energy"):
        documents = []
        # The same compile workers for one board as for all; what is compiled is not taken from a cache.
        jobs = max(1, options.cores - len(devices))
        for name, some in (("one", devices[:1]), ("all", devices)):
            store = options.output / f"boards-{objective}-{name}.db"
            store.unlink(missing_ok=True)
            document = tune(options, objective, some, jobs, options.seconds, store, f"{objective}-{name}")
            documents.append(document)
            print(f"{objective}, {len(some)} board(s), {jobs} compile workers: {document['evaluated']} configurations, "
                  f"{rate(document, options.seconds):.1f} a minute, statuses {document['statuses']}; best "
                  f"{document['best']['objective']:.6g} after {document['wall_seconds']:.0f} s in all", flush=True)
            for board in document.get("boards", []):
                factors = ", ".join(f"{q} x{f['value']:.4f} +-{196 * f['standard_error'] / f['value']:.2f} % (n {f['n']})"
                                    for q, f in board.get("factors", {}).items() if q in ("time", "energy"))
                total = board["busy_seconds"] + board["idle_seconds"]
                print(f"  {board['id']}: {board['measured']} measured, {100 * board['idle_seconds'] / total:.0f} % idle; {factors}",
                      flush=True)
        ratio = documents[1]["evaluated"] / max(1, documents[0]["evaluated"])
        (one, one_error), (many, many_error) = best_on_first(options, objective, devices[0], documents, options.output)
        away = abs(many - one) / (one_error**2 + many_error**2) ** 0.5 if one_error + many_error > 0 else 0
        print(f"{objective}: {ratio:.2f} times the configurations a minute of one board; on {devices[0]} the best of one board reads "
              f"{one:.6g} +-{1.96 * one_error:.2g}, that of all {many:.6g} +-{1.96 * many_error:.2g}: "
              f"{'better or within' if many <= one or away < 1.96 else 'outside'} the interval", flush=True)
        summary[objective] = {"ratio": ratio, "one": [one, one_error], "all": [many, many_error],
                              "evaluated": [d["evaluated"] for d in documents],
                              "factors": {b["id"]: b.get("factors", {}) for b in documents[1].get("boards", [])}}
    (options.output / "boards.json").write_text(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
