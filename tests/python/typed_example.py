"""What mypy --strict reads: the native package as a typed program uses it."""

from typing import Any, Dict, List

import numpy as np

import ergotune
from ergotune import kernel_tuner
from ergotune.kernel_tuner.observers import BenchmarkObserver


class Counting(ergotune.Observer):
    phase = "launches"

    def __init__(self) -> None:
        self.starts = 0

    def before_start(self) -> None:
        self.starts += 1

    def get_results(self) -> Dict[str, Any]:
        return {"starts": float(self.starts)}


class Backwards:
    def __init__(self, space: ergotune.SearchSpace) -> None:
        self.left: List[int] = list(range(len(space)))

    def ask(self, count: int) -> List[int]:
        return [self.left.pop() for _ in range(min(count, len(self.left)))]

    def tell(self, index: int, values: List[float], ok: bool) -> None:
        print(index, values, ok)


class Launches(BenchmarkObserver):
    def get_results(self) -> Dict[str, Any]:
        return {"device_name": str(self.dev.name)}


def as_in_kernel_tuner() -> List[Dict[str, Any]]:
    source = 'extern "C" void twice(float* y) { for (int i = 0; i < n; ++i) y[i] *= 2; }'
    results, env = kernel_tuner.tune_kernel("twice", source, 1, [np.ones(64, np.float32)], {"n": [16, 64]}, lang="C", quiet=True,
                                            observers=[Launches()], block_size_names=["n"])
    print(env["best_config"]["n"], kernel_tuner.run_kernel("twice", source, 1, [np.ones(64, np.float32)], {"n": 16}, lang="C")[0][0])
    return results


def main() -> None:
    as_in_kernel_tuner()
    problem = ergotune.Problem("scale")
    problem.set_source("c", "void scale(float* y) { for (int i = 0; i < n; ++i) y[i] *= 2; }", "scale")
    problem.add_buffer("y", np.ones(64, np.float32), "read_write")
    problem.add_parameter("n", [16, 64])
    problem.restrict(lambda p: p["n"] > 0)
    problem.restrict(lambda n: n < 1000)
    ergotune.register_strategy("typed_backwards", lambda space, seed, options: Backwards(space))
    result = ergotune.tune(problem, device="host", strategy="typed_backwards", observers=[Counting()], confirm=False,
                           metrics={"rate": lambda row: row["n"] / row["time"]}, objective="max rate")
    best = result.best
    if best is not None:
        print(best["n"], result.to_numpy()["time"].min(), result.seconds)


if __name__ == "__main__":
    main()
