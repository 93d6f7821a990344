"""ergotune.analyse, and Kernel Tuner's NCUObserver over ergotune's counters."""

import ergotune
import pytest


def recorded(tmp_path):
    file = tmp_path / "recorded.csv"
    lines = ["tile,status,time,energy,ipc"]
    lines += [f"{i},ok,{1 / (10 + i + 0.3 * (i % 3))},{1 / (5 + i % 7)},{1 + 0.1 * i}" for i in range(30)]
    file.write_text("\n".join(lines) + "\n")
    return file


def test_analysis_is_that_of_the_command(tmp_path):
    document = ergotune.analyse(recorded(tmp_path), figure=tmp_path / "figure.svg")
    ipc = next(i for i in document["influences"] if i["name"] == "ipc")
    assert ipc["speed"]["low"] > 0.95 and ipc["speed"]["p"] < 1e-6 and ipc["shift"]["p"] < 0.01
    assert document["weighted"][0]["from"] == 0 and document["weighted"][-1]["to"] == 1
    assert "<svg" in (tmp_path / "figure.svg").read_text()
    with pytest.raises(ergotune.UserError, match="bytes of device memory"):
        ergotune.analyse(recorded(tmp_path), peaks=[recorded(tmp_path)])


def test_ncu_observer_counts_by_ergotunes_counters():
    from ergotune import kernel_tuner as kt
    from ergotune.kernel_tuner.observers import NCUObserver
    from ergotune.kernel_tuner.observers.ncu import NCUObserver as same

    assert NCUObserver is same
    observer = NCUObserver(["dram__bytes_read.sum", "ipc"])
    measurement = {"quantities": {"dram__bytes_read.sum": {"value": 12.0}}}
    row = observer.take(measurement)
    assert row["dram__bytes_read.sum"] == 12.0 and row["ipc"] != row["ipc"], "what was not counted is no number"
    with pytest.raises(ValueError, match="needs the metrics"):
        NCUObserver()
    import numpy as np

    with pytest.raises(ergotune.UserError, match="NVIDIA's hardware counters"):
        kt.tune_kernel("f", "__kernel void f(__global float *y) { y[get_global_id(0)] = 1; }", 64, [np.zeros(64, np.float32)],
                       {"block_size_x": [32]}, lang="OpenCL", observers=[observer])


def test_a_recording_tells_what_it_holds(tmp_path):
    recording = ergotune.load_recording(recorded(tmp_path))
    assert len(recording) == 30 and recording.parameter_names == ["tile"]
    assert recording.objective == "time" and recording.warnings == []
    assert recording.configuration(3) == {"tile": 3}
