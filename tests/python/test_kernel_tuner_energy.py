"""Kernel Tuner's way to energy on a fake GPU (fake_gpu.py): its calls, with the import changed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ergotune
import ergotune.kernel_tuner as ours
from ergotune.kernel_tuner.energy import energy
from ergotune.kernel_tuner.observers.nvml import (
    NVMLObserver,
    get_idle_power,
    get_nvml_gr_clocks,
    get_nvml_mem_clocks,
    get_nvml_pwr_limits,
)

ROOT = Path(__file__).parents[2]
BUILD = Path(os.environ.get("ERGOTUNE_COMMAND", ROOT / "build/release/ergotune")).parent


def test_clocks_and_limits_are_listed_as_kernel_tuner_lists_them(board, capsys):
    assert get_nvml_gr_clocks(0) == {"nvml_gr_clock": [1410, 1210, 1010, 810, 610, 410]}
    assert "Using gr frequencies: [1410" in capsys.readouterr().out
    assert get_nvml_gr_clocks(0, n=3, quiet=True) == {"nvml_gr_clock": [1410, 810, 410]}
    assert get_nvml_mem_clocks(0, quiet=True) == {"nvml_mem_clock": [1215]}
    assert get_nvml_pwr_limits(0, n=3, quiet=True) == {"nvml_pwr_limit": [150, 375, 600]}
    assert capsys.readouterr().out == ""
    assert 30 < get_idle_power(0, n=2, sleep_s=0.01) < 400


def test_clocks_are_tuned_and_what_ran_is_in_the_rows(board):
    b = np.zeros(16, np.float32)
    tune_params = {"tile": [1, 2], "nvml_gr_clock": [1410, 810]}
    observer = NVMLObserver(["nvml_power", "nvml_energy", "core_freq", "mem_freq", "temperature"], device=0)
    metrics = {"f": lambda p: p["core_freq"], "edp": lambda p: p["nvml_energy"] * p["time"]}
    before = board()
    results, env = ours.tune_kernel("work", board.source, 1, [b], tune_params, lang="C", observers=[observer], metrics=metrics,
                                    objective="nvml_energy", objective_higher_is_better=False, quiet=True, iterations=3)
    assert board() == before == (0, 590000)
    assert len(results) == 4
    for row in results:
        assert {"nvml_power", "nvml_energy", "core_freq", "mem_freq", "temperature", "time", "times", "f", "edp"} <= set(row)
        assert not {"energy", "power", "core_clock"} & set(row)
        assert abs(row["core_freq"] - row["nvml_gr_clock"]) < 2, "the clock was set"
        assert row["mem_freq"] == 1215
        # W, J per launch and ms go together
        assert abs(row["nvml_energy"] / (row["nvml_power"] * row["time"] * 1e-3) - 1) < 0.1
        cycles = 12 + 3 * (row["tile"] - 2) ** 2
        assert abs(row["time"] * 1e-3 * row["nvml_gr_clock"] / cycles - 1) < 0.15, "the time follows the clock"
    assert env["best_config"]["nvml_gr_clock"] == 810


def test_energy_is_measured_where_no_clock_is_tuned(board):
    """With the script's own words on how to measure: what has no effect is said, what has one is heeded."""
    before = board()
    with pytest.warns(UserWarning, match="nvidia_smi_fallback"):
        observer = NVMLObserver(["nvml_energy", "nvml_power", "core_freq"], device=0, nvidia_smi_fallback="/usr/bin/nvidia-smi",
                                use_locked_clocks=True, continuous_duration=0.5)
    results, env = ours.tune_kernel("work", board.source, 1, [np.zeros(16, np.float32)], {"tile": [1, 2]}, lang="C", observers=[observer],
                                    objective="nvml_energy", objective_higher_is_better=False, quiet=True, iterations=3)
    assert all(row["nvml_energy"] > 0 and row["nvml_power"] > 0 for row in results) and len(results) == 2
    assert env["best_config"]["nvml_energy"] == min(row["nvml_energy"] for row in results)
    assert board() == before


def test_a_kernel_runs_for_a_given_time(board):
    """By Kernel Tuner's name, which is a second unless it is given, and by ergotune's own; also beyond the 3 s of other streams."""
    observer = NVMLObserver(["nvml_energy"], device=0, continuous_duration=1.5)
    results, _ = ours.tune_kernel("work", board.source, 1, [np.zeros(16, np.float32)], {"tile": [2]}, lang="C", observers=[observer],
                                  quiet=True, iterations=3)
    assert results[0]["nvml_energy"] > 0 and results[0]["benchmark_time"] >= 1500
    problem = ergotune.Problem("given_time")
    problem.set_source("c", board.source, "work")
    problem.add_parameter("tile", [2])
    problem.add_buffer("b", np.zeros(16, np.float32), access="write")
    problem.observe("energy:exactly=3.5")
    measurement = ergotune.measure(problem, device="host", sensors=["nvml:0"], precision=0.5)
    assert measurement["quantities"]["energy"]["value"] > 0 and measurement["measure_seconds"] >= 3.5


def test_power_limits_are_set_and_power_readings_given(board):
    results, _ = ours.tune_kernel("work", board.source, 1, [np.zeros(16, np.float32)], {"tile": [2], "nvml_pwr_limit": [150, 600]},
                                  lang="C", observers=[NVMLObserver(["nvml_power", "power_readings"], device=0)], quiet=True,
                                  strategy="brute_force")
    rows = {row["nvml_pwr_limit"]: row for row in results}
    assert rows[150]["nvml_power"] < 160 < rows[600]["nvml_power"]
    seconds, watts = np.array(rows[600]["power_readings"]).T
    assert len(watts) > 5 and (np.diff(seconds) > 0).all() and watts.max() > 150
    assert board() == (0, 590000)


def test_the_going_green_script(board):
    """examples/cuda/going_green_performance_model.py of Kernel Tuner, by its calls."""
    board.load()
    ridge, freqs, power, fitted, scaling = energy.create_power_frequency_model(device=0, n_samples=6, verbose=False,
                                                                               nvidia_smi_fallback=None, use_locked_clocks=True)
    assert ridge in (610, 810, 1010)
    # On a busy machine the power of a clock may not settle: that one is left out.
    assert len(freqs) >= 4 and all(min(abs(f - c) for c in range(410, 1411, 200)) <= 2 for f in freqs)
    assert (np.diff(power) > 0).all()
    assert len(fitted) == 4 and scaling == (freqs.min(), power.min())
    modelled = energy.estimated_power(freqs - freqs.min(), *fitted) * scaling[1]
    assert np.abs(modelled / power - 1).max() < 0.05
    clocks = get_nvml_gr_clocks(0, quiet=True)["nvml_gr_clock"]
    chosen = energy.get_frequency_range_around_ridge(ridge, clocks, 10, 5)
    assert ridge in chosen


def test_the_fit_is_kernel_tuners():
    theirs = pytest.importorskip("kernel_tuner.energy.energy", reason="Kernel Tuner's own needs SciPy and NVML's bindings",
                                 exc_type=ImportError)
    freqs = np.arange(300, 1500, 100.0)
    power = 60 * energy.estimated_power(freqs - 300, 600, 0.8, 4.0, 1e9)
    mine, fitted, scaling = energy.fit_power_frequency_model(freqs, power)
    ridge, their_fit, their_scaling = theirs.fit_power_frequency_model(freqs, power)
    assert scaling == their_scaling
    assert abs(mine - 900) <= max(abs(ridge - 900), 30)
    assert np.allclose(energy.estimated_power(freqs - 300, *fitted), theirs.estimated_power(freqs - 300, *fitted))


def test_a_clock_without_an_observer_is_refused(board):
    with pytest.raises(ValueError, match="NVMLObserver"):
        ours.tune_kernel("work", board.source, 1, [np.zeros(16, np.float32)], {"tile": [2], "nvml_gr_clock": [810]}, lang="C")
    with pytest.raises(ValueError, match="not in supported"):
        NVMLObserver(["watts"])


def test_a_clock_that_cannot_be_set_is_refused(board, monkeypatch):
    monkeypatch.setenv("ERGOTUNE_FORBID_CONTROLS", "1")
    with pytest.raises(Exception, match="(?i)control|clock"):
        ours.tune_kernel("work", board.source, 1, [np.zeros(16, np.float32)], {"tile": [2], "nvml_gr_clock": [810]}, lang="C",
                         observers=[NVMLObserver(["nvml_energy"], device=0)], quiet=True)


def test_clocks_hold_for_a_block(board):
    before = board()
    assert ergotune.clock_status("nvml:0")["devices"][0]["permission"]
    with pytest.raises(ZeroDivisionError), ergotune.clocks(core_clock_mhz=810, power_limit_w=200, control="nvml:0"):
        assert board() != before and board()[1] == 200_000
        assert ergotune.clock_status()["devices"][0]["journal"]["session_alive"]
        with pytest.raises(ergotune.UserError), ergotune.clocks(core_clock_mhz=410, control="nvml:0"):
            pass
        1 / 0
    assert board() == before and ergotune.restore_clocks()["complete"]
    for wrong in (dict(core_clock_mhz=1), dict(core_clock_mhz=810, control="nvml:7")):
        with pytest.raises(ergotune.UserError), ergotune.clocks(**wrong):
            pass
    with pytest.raises(TypeError), ergotune.clocks():
        pass


def test_the_others_names(monkeypatch):
    from ergotune.kernel_tuner.observers.pmt import PMTObserver
    from ergotune.kernel_tuner.observers.powersensor import PowerSensorObserver
    from ergotune.kernel_tuner.observers.tegra import TegraObserver, get_tegra_gr_clocks

    assert PowerSensorObserver(["ps_energy"], "/dev/ttyACM1").sensors == ("powersensor3:/dev/ttyACM1",)
    assert set(PMTObserver({"nvidia": 0}).keys) == {"nvidia_energy", "nvidia_power"}
    assert PMTObserver("rapl").sensors == ("rapl:package-0",)
    with pytest.raises(ours.NotSupported, match="one platform"):
        PMTObserver(["rapl", "nvidia"])
    assert TegraObserver(["core_freq", "tegra_energy"]).control == "tegra"
    with pytest.raises(ValueError):
        TegraObserver(["volts"])
    monkeypatch.delenv("ERGOTUNE_TEGRA_TEMPERATURE", raising=False)
    observer = TegraObserver(["tegra_power", "tegra_temp"], power_path="/sys/class/hwmon/hwmon3", temp_path="/sys/class/thermal/thermal_zone1")
    assert observer.sensors == ("tegra:/sys/class/hwmon/hwmon3",)
    assert os.environ.pop("ERGOTUNE_TEGRA_TEMPERATURE") == "/sys/class/thermal/thermal_zone1"
    with pytest.raises(ValueError, match="cache"):
        energy.get_frequency_power_relation_fp32(0, simulation_mode=True)
    assert callable(get_tegra_gr_clocks)
    from ergotune.kernel_tuner.observers import NVMLObserver as by_package

    assert by_package is NVMLObserver


def test_a_jetsons_clocks_are_in_hertz(tmp_path, monkeypatch):
    from ergotune.kernel_tuner.observers.tegra import get_tegra_gr_clocks

    gpu = tmp_path / "sys/class/devfreq/17000000.gpu"
    (gpu / "device/of_node").mkdir(parents=True)
    (gpu / "device/of_node/name").write_text("gpu\0")
    (gpu / "available_frequencies").write_text("114750000 204000000 306000000 408000000\n")
    monkeypatch.setenv("ERGOTUNE_SYSFS_ROOT", str(tmp_path))
    assert get_tegra_gr_clocks(n=2, quiet=True) == {"tegra_gr_clock": [114750000, 408000000]}


SIDE_BY_SIDE = r"""
import json, sys
import numpy as np
if sys.argv[1] == "theirs":
    import kernel_tuner as tuner
    from kernel_tuner.observers import nvml
else:
    import ergotune.kernel_tuner as tuner
    from ergotune.kernel_tuner.observers import nvml
found = [nvml.get_nvml_gr_clocks(0, quiet=True), nvml.get_nvml_gr_clocks(0, n=3, quiet=True), nvml.get_nvml_mem_clocks(0, quiet=True),
         nvml.get_nvml_pwr_limits(0, n=3, quiet=True)]
observer = nvml.NVMLObserver(["nvml_power", "nvml_energy", "core_freq", "mem_freq", "temperature"], device=0, use_locked_clocks=True)
results, env = tuner.tune_kernel("work", sys.stdin.read(), 1, [np.zeros(16, np.float32)], {"tile": [2], "nvml_gr_clock": [1410, 810]},
                                 lang="C", observers=[observer], quiet=True, iterations=7)
rows = [{k: v if isinstance(v, (int, float)) else str(type(v).__name__) for k, v in row.items()} for row in results]
print("\n" + json.dumps({"found": found, "rows": rows}, default=int))
"""


def test_kernel_tuner_itself_gives_the_same_rows_on_the_same_board(board):
    """Both tools' own observers, on the same fake library: parameters, keys and units are the same."""
    pytest.importorskip("kernel_tuner")
    pytest.importorskip("pynvml")
    # Kernel Tuner takes the time (ms) that the function returns
    source = board.source.replace("void work(float* b) {", "float work(float* b) {\n  double began = now();")
    source = source[: source.rindex("}")] + "  return 1000 * (now() - began);\n}\n"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(BUILD / "tests/fakes/nvml")}
    told = {}
    for which in ("theirs", "ours"):
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", SIDE_BY_SIDE, which], input=source, capture_output=True,
                              text=True, env=environment)
        assert done.returncode == 0, done.stderr[-2000:]
        told[which] = json.loads(done.stdout.strip().rpartition("\n")[2])
    assert told["theirs"]["found"] == told["ours"]["found"]
    theirs, ours_ = ({row["nvml_gr_clock"]: row for row in told[which]["rows"]} for which in ("theirs", "ours"))
    assert set(theirs) == set(ours_) == {1410, 810}
    for clock, row in theirs.items():
        # its second pass, for power, has its own clocks and temperature
        assert {key for key in row if not key.startswith("pwr_")} <= set(ours_[clock])
        for key in ("core_freq", "mem_freq"):
            assert abs(row[key] - ours_[clock][key]) < 2, "MHz"
        assert 0.03 < row["time"] / ours_[clock]["time"] < 30, "ms: neither s nor us, whatever else runs here"
        # W and J; its own are of readings while a call waits, of which a C function has none
        assert abs(ours_[clock]["nvml_energy"] / (ours_[clock]["nvml_power"] * ours_[clock]["time"] * 1e-3) - 1) < 0.15
    assert board()[0] == 0
