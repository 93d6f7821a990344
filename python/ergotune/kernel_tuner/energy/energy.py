"""Power over the core clock: sampled with a kernel that loads the whole GPU, and fitted (Going Green, Section V-D).

The same functions, parameters, results and units as Kernel Tuner's; the samples are those of ``ergotune model``
(docs/model.md), which says more of them than a fit: intervals, where the GPU throttles, and what it has of voltages.
"""

import numpy as np

from ..._measuring import model
from .._observers import warn_of_fallback
from ..observers.nvml import get_nvml_gr_clocks
from ..util import read_cache


def get_frequency_power_relation_fp32(device, n_samples=10, nvidia_smi_fallback=None, use_locked_clocks=False, cache=None,
                                      simulation_mode=None):
    """Samples of ``(MHz, W)`` under full FP32 load, as two arrays. ``cache``: they come from this cache file of Kernel
    Tuner's instead. ``use_locked_clocks``: they are used where the GPU has them. ``nvidia_smi_fallback`` has no
    effect, and a warning says it."""
    warn_of_fallback(nvidia_smi_fallback)
    if cache:
        rows = read_cache(cache, open_cache=False)["cache"].values()
        rows = [row for row in rows if "core_freq" in row and "nvml_power" in row]
        return np.array([row["core_freq"] for row in rows]), np.array([row["nvml_power"] for row in rows])
    if simulation_mode:
        raise ValueError("simulation_mode needs cache=FILE")
    gpu = f"nvml:{device}"
    samples = model(clocks=n_samples, spaced=True, keep=False, sensors=[gpu], controls=[gpu])["samples"]
    samples.sort(key=lambda sample: sample["clock_mhz"])
    return np.array([s["clock_mhz"] for s in samples]), np.array([s["power_w"] for s in samples])


def estimated_voltage(clocks, clock_threshold, voltage_scale):
    """Relative to the voltage below the threshold; clocks in MHz, the scale per GHz."""
    return [1 + 1e-3 * voltage_scale * max(clock - clock_threshold, 0) for clock in clocks]


def estimated_power(clocks, clock_threshold, voltage_scale, clock_scale, power_max):
    """Relative to the least power; clocks in MHz above the lowest."""
    voltages = estimated_voltage(clocks, clock_threshold, voltage_scale)
    return np.array([min(power_max, 1 + 1e-3 * clock_scale * clock * voltage**2) for clock, voltage in zip(clocks, voltages)])


def fit_power_frequency_model(freqs, nvml_power):
    """``(ridge in MHz, (threshold, voltage scale, clock scale, power max), (lowest clock, least power))``, by least squares."""
    freqs, power = np.asarray(freqs, float), np.asarray(nvml_power, float)
    x, y = freqs - freqs.min(), power / power.min()
    most, span = y.max(), x.max()
    best, thresholds, scales = None, np.linspace(0, span, 61), np.linspace(0, 1, 41)
    for _ in range(4):  # each time around the best so far, a tenth as wide
        for threshold in thresholds:
            for scale in scales:
                shape = 1e-3 * x * (1 + 1e-3 * scale * np.maximum(x - threshold, 0)) ** 2
                below = y < 0.98 * most  # the others may be capped
                used = shape[below] if below.sum() >= 3 else shape
                wanted = (y[below] if below.sum() >= 3 else y) - 1
                clock_scale = max(float(used @ wanted) / max(float(used @ used), 1e-300), 0.0)
                for cap in (most, 1.1 * most):
                    error = float(np.sum((np.minimum(cap, 1 + clock_scale * shape) - y) ** 2))
                    if best is None or error < best[0]:
                        best = (error, threshold, scale, clock_scale, cap)
        width, depth = (thresholds[-1] - thresholds[0]) / 10, (scales[-1] - scales[0]) / 10
        thresholds = np.clip(np.linspace(best[1] - width, best[1] + width, 21), 0, span)
        scales = np.clip(np.linspace(best[2] - depth, best[2] + depth, 21), 0, 1)
    fitted = tuple(np.round(best[1:], 2))
    return fitted[0] + freqs.min(), fitted, (freqs.min(), power.min())


def create_power_frequency_model(device=0, n_samples=10, verbose=False, nvidia_smi_fallback=None, use_locked_clocks=False,
                                 cache=None, simulation_mode=None):
    """``(clock nearest to the ridge in MHz, sampled clocks, sampled powers, fitted parameters, scaling)``."""
    freqs, power = get_frequency_power_relation_fp32(device, n_samples, nvidia_smi_fallback, use_locked_clocks, cache=cache,
                                                     simulation_mode=simulation_mode)
    if verbose:
        print("Clock frequencies:", freqs.tolist())
        print("Power consumption:", power.tolist())
    ridge, fitted, scaling = fit_power_frequency_model(freqs, power)
    clocks = np.array(get_nvml_gr_clocks(device, quiet=True)["nvml_gr_clock"])
    nearest = clocks[np.argmin(abs(clocks - ridge))]
    if verbose:
        print(f"Modelled most energy efficient frequency: {ridge} MHz")
        print(f"Closest configurable most energy efficient frequency: {nearest} MHz")
    return nearest, freqs, power, fitted, scaling


def get_frequency_range_around_ridge(ridge_frequency, all_frequencies, freq_range, number_of_freqs, verbose=False):
    """``number_of_freqs`` of ``all_frequencies`` within ``freq_range`` per cent around the ridge, each once."""
    clocks = np.asarray(all_frequencies)
    share = 1e-2 * int(freq_range)
    wanted = np.linspace((1 - share) * ridge_frequency, (1 + share) * ridge_frequency, int(number_of_freqs))
    chosen = np.unique([clocks[np.argmin(abs(clocks - f))] for f in wanted]).tolist()
    if verbose:
        print(f"Suggested range of frequencies to auto-tune: {chosen} MHz")
    return chosen
