"""lang="HIP" in ergotune.kernel_tuner, over a fake run time (tests/fakes/hip) and the real hiprtc."""

import ctypes.util
import os
from pathlib import Path

import numpy as np
import pytest

from ergotune import kernel_tuner

FAKES = Path(os.environ["ERGOTUNE_COMMAND"]).parent / "tests/fakes/hip" if "ERGOTUNE_COMMAND" in os.environ else Path("/nowhere")

SOURCE = """
extern "C" __global__ void doubled(float* y, const float* x, int n) {
  const int i = blockIdx.x * block_size_x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
"""


@pytest.fixture
def hip(monkeypatch):
    if not (FAKES / "libamdhip64.so.5").exists():
        pytest.skip("build target fake_hip")
    if not ctypes.util.find_library("amdhip64") and not Path("/usr/lib/x86_64-linux-gnu/libamdhip64.so.5").exists():
        pytest.skip("no hiprtc (Debian: libamdhip64-5)")
    monkeypatch.setenv("ERGOTUNE_HIP", str(FAKES / "libamdhip64.so.5"))
    monkeypatch.setenv("FAKE_HIP_KERNELS", str(FAKES / "kernels.so"))


def test_hip_goes_to_the_amd_board(hip):
    n = np.int32(1024)
    x = np.random.default_rng(1).standard_normal(n).astype(np.float32)
    results, environment = kernel_tuner.tune_kernel(
        "doubled", SOURCE, int(n), [np.zeros_like(x), x, n], {"block_size_x": [64, 128, 256]}, lang="HIP",
        answer=[2 * x, None, None], quiet=True)
    assert environment["device_name"] == "AMD Instinct MI250X"
    times = {row["block_size_x"]: row["time"] for row in results}
    assert not isinstance(times[128], str) and 2 <= times[128] < 3, "ms, as the run time has them"
    assert times[256] > times[128]
    assert not isinstance(times[64], float), "it forgets its last number"
