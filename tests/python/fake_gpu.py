"""Fixtures: a fake GPU (tests/fakes/nvml) and a kernel whose time follows its clock (live_kernel.hpp)."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("ERGOTUNE_COMMAND", ROOT / "build/release/ergotune")).parent

PROGRAM = r"""
#include <cstdio>
#include "fakes/nvml/live_kernel.hpp"
#include "fakes/nvml/fake_nvml.hpp"
int main(int, char** argv) {
  fake_nvml::LiveLoad load;
  load.mega_cycles = "(12.0 + 3.0 * (tile - 2) * (tile - 2))";
  load.activity = "(0.7 + 0.05 * tile)";
  std::puts(fake_nvml::live_kernel(load).c_str());
  auto* state = fake_nvml::map_state(argv[1], "generation=ga100 devices=1");
  auto& b = state->gpus[0];
  b.graphics_clock_count = 6;
  for (int i = 0; i < 6; ++i) b.graphics_clocks[i] = 1410 - 200 * i;
  b.knee_mhz = 830;
  b.counter.period = 0.002;
  b.counter.sleeps = 0;
  b.max_power_limit_mw = 600000;
  b.power_limit_mw = 590000;
  b.background_activity = 1;
  for (auto& gpu : state->gpus) fake_nvml::start(gpu, fake_nvml::model_now(*state));
}
"""
LOOK = r"""
#include <cstdio>
#include "fakes/nvml/fake_nvml.hpp"
int main(int count, char** argv) {
  auto* state = fake_nvml::map_state(argv[1], "");
  if (count > 2) {  // fully loaded from now on, whatever a kernel left
    state->gpus[0].background_activity = 1;
    state->gpus[0].background_until = 0;
  }
  std::printf("%d %u\n", state->gpus[0].locked, state->gpus[0].power_limit_mw);
}
"""


def compiled(folder, name, text):
    (folder / f"{name}.cpp").write_text(text)
    subprocess.run(["c++", "-std=c++20", "-O0", f"-I{ROOT / 'tests'}", "-o", str(folder / name), str(folder / f"{name}.cpp")],
                   check=True)
    return folder / name


@pytest.fixture(scope="session")
def fake_gpu(tmp_path_factory):
    """A folder with the state of a fake GPU. One for the process, since a library that is loaded keeps the state it opened first."""
    folder = tmp_path_factory.mktemp("fake_gpu")
    make, look = compiled(folder, "make", PROGRAM), compiled(folder, "look", LOOK)
    source = subprocess.run([make, folder / "state"], check=True, capture_output=True, text=True).stdout
    return folder, look, source


@pytest.fixture(scope="module")
def board(fake_gpu):
    """A function that returns (locked, power limit in mW) of the fake GPU; with the kernel's source as ``source``."""
    folder, look, source = fake_gpu
    state = folder / "state"
    changed = {"ERGOTUNE_NVML": str(BUILD / "tests/fakes/nvml/libnvidia-ml.so.1"), "ERGOTUNE_FAKE_NVML_STATE": str(state),
               "ERGOTUNE_STATE_DIR": str(folder / "st"), "ERGOTUNE_DATA_DIR": str(folder / "data"),
               "ERGOTUNE_HELPER_SOCKET": "/nowhere"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in changed.items():
            patch.setenv(name, value)

        def settings():
            words = subprocess.run([look, state], check=True, capture_output=True, text=True).stdout.split()
            return tuple(int(word) for word in words)

        settings.source = source
        settings.load = lambda: subprocess.run([look, state, "load"], check=True, capture_output=True)
        yield settings
