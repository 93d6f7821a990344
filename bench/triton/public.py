"""Kernels of published Triton libraries, unchanged, with ergotune's decorator in the place of Triton's.

    python3 bench/triton/public.py [--small] [--kernels LIST] [--limit SECONDS] [--output FILE]

A GEMM (fla-core: fla.ops.utils.matmul) and an attention (flash-attn-triton: _attn_fwd), as PyPI has them. Each library is imported in a
process of its own with ergotune's decorator in the place of Triton's, and in another, which finds the code compiled, with Triton's. Then
the chosen configurations side by side, in four states of the GPU. A process that runs for longer than --limit prints where it is and ends. --small: tiny sizes in Triton's interpreter.
"""

import argparse
import faulthandler
import json
import os
import subprocess
import sys
import tempfile
import time
import types
from pathlib import Path

from states import times_by_state

NAMES = ["gemm", "attention"]


def load(name, small):
    """The tuned kernel of the library, a call of the library's own function, and what it should return."""
    import torch

    device = "cpu" if small else "cuda"
    torch.manual_seed(1)
    if name == "gemm":
        from fla.ops.utils.matmul import matmul, matmul_kernel

        n = 64 if small else 4096
        a, b = (torch.randn(n, n, device=device).half() / n**0.25 for _ in range(2))
        return matmul_kernel.fn, lambda: matmul(a, b), lambda: a.float() @ b.float()
    sys.modules.setdefault("triton.tools.experimental_descriptor", types.ModuleType("gone"))  # it imports what newer releases lack, and needs none of it
    from flash_attn_triton.triton_kernel.attention_kernel import _attn_fwd, attention

    q, k, v = (torch.randn(*((1, 1, 128) if small else (4, 32, 2048)), 64, device=device).half() for _ in range(3))
    return _attn_fwd, lambda: attention(q, k, v), lambda: torch.nn.functional.scaled_dot_product_attention(q.float(), k.float(), v.float())


def child(what, name, small, chosen, limit):
    faulthandler.dump_traceback_later(limit, exit=True)
    import torch
    import triton

    if what == "ergotune":
        import ergotune.triton

        triton.autotune = ergotune.triton.autotune
        if small:
            import functools

            triton.autotune = functools.partial(ergotune.triton.autotune, max_seconds=0.01, min_repeats=2, confirm=False, space=None, budget=4)
    kernel, call, reference = load(name, small)
    if what == "judge":
        def with_config(config):
            def launch():
                kernel.configs = [config]
                call()
            return launch

        candidates = [config for config in kernel.configs if str(config) in chosen]
        return print(json.dumps({state: dict(zip(map(str, candidates), times)) for state, times in times_by_state(list(map(with_config, candidates)))}))
    seconds = []
    for _ in range(2):
        began = time.perf_counter()
        found = call()
        if not small:
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    expected = reference()
    right = bool(((found.float() - expected).abs() <= 0.02 * expected.abs() + 0.02 * expected.pow(2).mean().sqrt()).all())
    result = getattr(kernel, "result", None)
    print(json.dumps({"tuning_seconds": seconds[0] - seconds[1], "right": right, "chosen": str(kernel.best_config),
                      "configurations": len(kernel.configs), "tuned": result is not None,
                      "statuses": sorted({m["status"] for m in result.measurements}) if result else None}))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("triton-public.json"))
    parser.add_argument("--kernels", default=",".join(NAMES))
    parser.add_argument("--limit", type=float, default=300)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(*json.loads(options.child))
    folder = tempfile.mkdtemp(prefix="ergotune-public-")
    rows = {}

    def run(what, name, label, chosen=()):
        environment = {**os.environ, "TRITON_CACHE_DIR": f"{folder}/compiled", "ERGOTUNE_DATA_DIR": f"{folder}/data"}
        if options.small:
            environment["TRITON_INTERPRET"] = "1"
        done = subprocess.run([sys.executable, __file__, "--child", json.dumps([what, name, options.small, list(chosen), options.limit])],
                              capture_output=True, text=True, env=environment)
        if done.returncode != 0:
            return print(f"{label}: failed\n{done.stderr[-2500:]}", flush=True)
        rows[label] = json.loads(done.stdout.splitlines()[-1])
        print(f"{label}: {rows[label]}", flush=True)
        options.output.write_text(json.dumps(rows, indent=1))
        return rows[label]

    for name in options.kernels.split(","):
        ours = run("ergotune", name, f"{name}, ergotune")
        theirs = None if options.small else run("triton", name, f"{name}, triton.autotune, compiled")
        if options.small:
            run("ergotune", name, f"{name}, ergotune, second process")
        if theirs and ours:
            run("judge", name, f"{name}, side by side", {theirs["chosen"], ours["chosen"]})


if __name__ == "__main__":
    main()
