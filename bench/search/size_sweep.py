#!/usr/bin/env python3
"""A matrix product tuned at sizes from 512 to 8192, what a tree of six leaves loses, and how well predictions hold for what was not seen.

    size_sweep.py --ergotune PROGRAM --output FILE [--device cuda:0] [sweep] [predict]

sweep: `tune --set` with all sizes; at some of them a longer search of its own afterwards, whose winner is measured in turns with the tree's choice.
predict: the share of the 95 % intervals of `ergotune predict` that hold the measured value, for left-out rows as the command states it, and
for as many random configurations that another session measured.
"""

import argparse
import csv
import json
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = [512, 1024, 1536, 2048, 3072, 4096, 6144, 8192]


def as_json(*command):
    run = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if run.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}:\n{run.stderr}")
    return json.loads(run.stdout)


def chosen_by(nodes, constants):
    node = nodes[0]
    while "at_most" in node:
        node = nodes[node["below" if constants[node["constant"]] <= node["at_most"] else "above"]]
    return node["configuration"]


def sweep(options, folder):
    problem = EXAMPLES / options.problem
    tune = [options.ergotune, "tune", problem, "--device", options.device, "--json", "-q"]
    began = time.monotonic()
    found = as_json(*tune, "--set", f"SIZE_M,SIZE_N,SIZE_K={','.join(map(str, SIZES))}", "--budget", options.budget, "--store", folder / "sweep.db")
    leaves = sum("at_most" not in node for node in found["tree"]["nodes"])
    print(f"{len(SIZES)} sizes in {time.monotonic() - began:.0f} s, {sum(size['result']['evaluated'] for size in found['sizes'])} measured; tree of "
          f"{leaves}: mean loss {100 * found['tree']['mean_loss']:.2f} %, worst {100 * found['tree']['worst_loss']:.2f} %; one for all: "
          + (f"worst {100 * found['one_for_all']['worst_loss']:.2f} %" if found["one_for_all"] else "none"), flush=True)
    rows = []
    for size in options.longer:
        sizes = f"SIZE_M,SIZE_N,SIZE_K={size}"
        longer = as_json(*tune, "--set", sizes, "--budget", options.longer_budget, "--seed", 2, "--store", folder / f"{size}.db")
        constants = next(s["constants"] for s in found["sizes"] if s["constants"]["SIZE_M"] == size)
        pair = {"tree": chosen_by(found["tree"]["nodes"], constants), "longer": longer["best"]["configuration"]}
        times = {name: [] for name in pair}
        for _ in range(3 if pair["tree"] != pair["longer"] else 0):
            for name, configuration in pair.items():
                measured = as_json(options.ergotune, "measure", problem, "--device", options.device, "--set", sizes, "--json", "--config",
                                   json.dumps(configuration))
                times[name].append(measured["quantities"]["time"]["value"])
        loss = statistics.median(times["tree"]) / statistics.median(times["longer"]) - 1 if times["tree"] else 0.0
        rows.append({"size": size, "loss": loss, "evaluated": longer["evaluated"], "times": times, **pair})
        print(f"{size}: the tree's choice is {100 * loss:+.2f} % above the best of a search of its own ({longer['evaluated']} measured)", flush=True)
    return {"sweep": found, "longer": rows}


def predict(options, folder):
    stores, rows = [], []
    for seed in (1, 2):
        stores.append(folder / f"predict-{seed}.db")
        as_json(options.ergotune, "tune", EXAMPLES / "gemm/gemm.toml", "--device", options.device, "--json", "-q", "--no-confirm", "--strategy", "random",
                "--seed", seed, "--budget", options.rows, "--store", stores[-1])
        text = subprocess.run([options.ergotune, "export", stores[-1], "--format", "csv"], check=True, capture_output=True, text=True).stdout
        rows.append(list(csv.DictReader(text.splitlines())))
    names = list(rows[1][0])[: list(rows[1][0]).index("status")]
    known = [[row[name] for name in names] for row in rows[0]]
    unseen = [row for row in rows[1] if row["status"] == "ok" and [row[name] for name in names] not in known]
    wanted = [part for row in unseen for part in ("--config", json.dumps({name: int(row[name]) for name in names}))]
    found = as_json(options.ergotune, "predict", stores[0], "--json", *wanted)
    held, errors = 0, []
    for row, predicted in zip(unseen, found["predictions"]):
        measured, modelled = float(row["time"]), predicted["modelled"]["time"]
        held += modelled["low"] <= measured <= modelled["high"]
        errors.append(abs(modelled["value"] / measured - 1))
    left_out = found["models"]["time"]
    print(f"predict, from {left_out['configurations']} rows: left-out rows within the interval {100 * left_out['coverage']:.1f} %, median error "
          f"{100 * left_out['median_error']:.1f} %; {len(unseen)} unseen: {100 * held / len(unseen):.1f} %, {100 * statistics.median(errors):.1f} %", flush=True)
    return {"left_out": left_out, "unseen": len(unseen), "held": held, "median_error": statistics.median(errors)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ergotune", default="ergotune")
    parser.add_argument("--output", type=Path, default=Path("size-sweep.json"))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--problem", default="tensor_gemm/hopper_gemm.toml")
    parser.add_argument("--budget", default="5s", help="of each size")
    parser.add_argument("--longer", type=int, nargs="*", default=[1024, 3072])
    parser.add_argument("--longer-budget", default="10s")
    parser.add_argument("--rows", default="80", help="that predictions are made from, and compared with")
    parser.add_argument("parts", nargs="*", default=["sweep", "predict"])
    options = parser.parse_args()
    document = {}
    for part in options.parts:
        with tempfile.TemporaryDirectory() as folder:
            document[part] = {"sweep": sweep, "predict": predict}[part](options, Path(folder))
        options.output.write_text(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
