"""triton.autotune and ergotune.triton.autotune on the kernels of Triton's tutorials, with the same configurations.

    python3 bench/triton/tutorials.py [--limit SECONDS] [--output FILE] [--kernels LIST] [--parts LIST] [--small]

Both begin with an empty compile cache in a process of their own; further passes find the code compiled. Then: a second process, which
must not tune; a wrong configuration among the right ones; and the chosen configurations side by side, by triton.testing.do_bench. It begins nothing new after --limit seconds. --small: tiny sizes in Triton's interpreter, to test this program.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CASES = ["matmul", "softmax", "layer_norm", "attention"]


def child(what, names, small, settings):
    import torch
    import triton
    from kernels import Case

    device = "cpu" if small else "cuda"
    synchronise = (lambda: None) if small else torch.cuda.synchronize
    rows = []
    settings = dict(settings)
    seeds = settings.pop("seeds", [1])
    for name, seed in ((name, seed) for name in names for seed in seeds):
        case = Case(name, small, device)
        configs = case.configs[:6] if small else case.configs
        if what.endswith("planted"):
            best = configs[1:2] if small else [configs[i] for i in (0, 8, 12)]
            configs = best + [triton.Config({**c.kwargs, "SKIP": 2}, num_warps=c.num_warps, num_stages=c.num_stages) for c in best]
            configs = [c for c in configs if c.kwargs.setdefault("SKIP", 1)]
        if what.startswith("triton"):
            def timed(call, quantiles):
                began = time.perf_counter()
                call()
                return [time.perf_counter() - began] * 3

            decorate = triton.autotune(configs, key=case.key, **({"do_bench": timed} if small else {}))
        else:
            import ergotune.triton

            if small:
                settings = {"max_seconds": 0.01, "min_repeats": 2, "confirm": False, **settings}
            decorate = ergotune.triton.autotune(configs, key=case.key, seed=seed, cache_results=len(seeds) == 1, **settings)
        kernel = decorate(case.kernel)
        synchronise()
        times = []
        for _ in range(2):
            began = time.perf_counter()
            kernel[case.grid](*case.arguments)
            synchronise()
            times.append(time.perf_counter() - began)
        row = {"kernel": name, "configurations": len(configs), "tuning_seconds": times[0] - times[1], "is_right": case.is_right(),
               "chosen": kernel.best_config.all_kwargs()}
        if result := getattr(kernel, "result", None):
            best = result.document["best"]
            row.update(tuned=True, objective=best["objective"], half_width=best.get("half_width"), session_seconds=result.seconds,
                       measurements=[{"configuration": c, "status": m["status"], "message": m["message"],
                                      **{n: q["value"] for n, q in m["quantities"].items()}}
                                     for c, m in zip(result.configurations, result.measurements)])
        elif what.startswith("triton"):
            row["measurements"] = [{"configuration": c.all_kwargs(), "time": 1e-3 * t[0]} for c, t in kernel.configs_timings.items()]
        rows.append(row)
    print(json.dumps(rows))


def judge(chosen, small):
    """Times of the chosen configurations, in turns."""
    from kernels import Case
    from states import times_by_state

    def once(calls):
        times = []
        for call in calls:
            began = time.perf_counter()
            call()
            times.append(time.perf_counter() - began)
        return [("", times)]

    rows = []
    for name, configs in chosen.items():
        case = Case(name, small, "cpu" if small else "cuda")
        calls = [lambda config=config: case.kernel[case.grid](*case.arguments, **config) for config in configs]
        for state, times in (once if small else times_by_state)(calls):
            rows += [{"kernel": name, "state": state, "configuration": c, "seconds": t} for c, t in zip(configs, times)]
    print(json.dumps(rows))


class Bench:
    def __init__(self, options):
        self.options = options
        self.began = time.monotonic()
        self.results = {}
        self.folder = Path(tempfile.mkdtemp(prefix="ergotune-triton-"))

    def left(self):
        return self.options.limit - (time.monotonic() - self.began)

    def run(self, label, what, cache, data, names=CASES, **settings):
        """A process of its own. What it prints is kept under the label."""
        if self.left() < 0:
            return print(f"{label}: left out, the time is over", flush=True)
        environment = {**os.environ, "TRITON_CACHE_DIR": str(self.folder / cache), "ERGOTUNE_DATA_DIR": str(self.folder / data)}
        if self.options.small:
            environment["TRITON_INTERPRET"] = "1"
        command = [sys.executable, __file__, "--child", json.dumps([what, names, self.options.small, settings])]
        began = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        seconds = time.monotonic() - began
        if done.returncode != 0:
            print(f"{label}: failed\n{done.stderr[-3000:]}", flush=True)
            return None
        rows = json.loads(done.stdout.splitlines()[-1])
        self.results[label] = {"seconds": seconds, "rows": rows}
        print(f"\n{label} ({seconds:.1f} s)", flush=True)
        for row in rows:
            if what == "judge":
                print(f"  {row['kernel']:10s} {row['state']:17s} {1e6 * row['seconds']:9.2f} us  {row['configuration']}")
            else:
                states = [m.get("status", "") for m in row.get("measurements", [])]
                print(f"  {row['kernel']:10s} first launch {row['tuning_seconds']:7.2f} s, {'right' if row['is_right'] else 'WRONG'}, "
                      f"tuned {row.get('tuned', what.startswith('triton'))}, {len(states)} measured, "
                      f"{states.count('wrong_result')} wrong, {row.get('objective', '')} {row['chosen']}")
        self.options.output.write_text(json.dumps(self.results, indent=1))
        return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=240)
    parser.add_argument("--output", type=Path, default=Path("triton-tutorials.json"))
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--kernels", default=",".join(CASES))
    parser.add_argument("--parts", default="theirs,ours,wrong,compiled")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        what, names, small, settings = json.loads(options.child)
        return judge(names, small) if what == "judge" else child(what, names, small, settings)
    bench = Bench(options)
    parts, names = options.parts.split(","), options.kernels.split(",")
    chosen = {name: [] for name in names}

    def run(label, what, cache, data, names=names, **settings):
        for row in bench.run(label, what, cache, data, names, **settings) or []:
            if "planted" not in what and row["chosen"] not in chosen[row["kernel"]]:
                chosen[row["kernel"]].append(row["chosen"])

    if "theirs" in parts:
        run("triton.autotune, nothing compiled", "triton", "cache-triton", "unused")
    if "ours" in parts:
        run("ergotune, nothing compiled", "ergotune", "cache-ergotune", "data-0")
        run("ergotune, second process", "ergotune", "cache-ergotune", "data-0")
    if "wrong" in parts:
        run("triton.autotune, a wrong configuration", "triton planted", "cache-ergotune", "unused", ["matmul"])
        run("ergotune, a wrong configuration", "ergotune planted", "cache-ergotune", "data-planted", ["matmul"])
    if "compiled" in parts:
        run("ergotune, compiled, seeds 2 to 5", "ergotune", "cache-ergotune", "unused", seeds=[2, 3, 4, 5])
        run("triton.autotune, compiled, 2 passes", "triton", "cache-ergotune", "unused", seeds=[1, 2])
    bench.options.limit += 60
    bench.run("chosen configurations, side by side", "judge", "cache-ergotune", "unused", chosen)


if __name__ == "__main__":
    main()
