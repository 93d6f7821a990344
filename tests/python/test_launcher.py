"""The launcher from Python, on PyOpenCL's own queue and buffers."""

import gc
import pathlib

import numpy as np
import pytest

from ergotune.launcher import Kernel, LaunchError

cl = pytest.importorskip("pyopencl")
HEAT = pathlib.Path(__file__).parents[2] / "examples/application/heat.toml"


@pytest.fixture(name="queue")
def queue_of_pocl():
    try:
        return cl.CommandQueue(cl.Context([cl.get_platforms()[0].get_devices()[0]]))
    except cl.Error:
        pytest.skip("no OpenCL device")


def test_a_kernel_runs_by_wisdom_on_buffers_of_pyopencl(queue, tmp_path):
    width, height = 40, 24
    cells = np.random.default_rng(1).random((height, width), dtype=np.float32)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    now, after = (cl.Buffer(queue.context, flags, hostbuf=cells) for _ in range(2))
    expected = cells.copy()
    expected[1:-1, 1:-1] += 0.2 * (cells[1:-1, :-2] + cells[1:-1, 2:] + cells[:-2, 1:-1] + cells[2:, 1:-1] - 4 * cells[1:-1, 1:-1])

    name = queue.device.name.strip()
    (tmp_path / "heat.wisdom").write_text(
        '{"ergotune_wisdom":2,"kernel":"heat"}\n'
        '{"configuration":{"BLOCK_X":8,"BLOCK_Y":2,"ROWS":4},"problem_size":[40,24],"device":{"name":"%s"}}\n{"device"\n' % name)
    warnings = []
    with Kernel(HEAT, wisdom=tmp_path, cache=tmp_path / "cache", warn=warnings.append) as heat:
        why = heat.why(queue, width, height, 0.2, now, after)
        heat(queue, np.int32(width), height, 0.2, now, after)
        found = np.empty_like(cells)
        cl.enqueue_copy(queue, found, after)
        np.testing.assert_allclose(found, expected, rtol=1e-5)
        assert why["configuration"] == {"BLOCK_X": 8, "BLOCK_Y": 2, "ROWS": 4}
        assert (why["match"], why["is_default"]) == ("exact", False)
        assert len(warnings) == 1 and "heat.wisdom:3" in warnings[0]
        (tmp_path / "heat.wisdom").unlink()
        heat.reload()
        assert heat.why(queue, width, height, 0.2, now, after)["is_default"]


def test_mistakes_are_told(queue, tmp_path):
    with pytest.raises(LaunchError, match="cannot be read"):
        Kernel(tmp_path / "none.toml")
    with pytest.raises(LaunchError, match="unknown key"):
        Kernel("name = 'x'\nnonsense = 1\n", folder=tmp_path)
    heat = Kernel(HEAT, cache="none")
    with pytest.raises(LaunchError, match=r"takes 5 arguments \(int32, int32, float32, \*, \*\), and was given 1"):
        heat(queue, 1)
    with pytest.raises(LaunchError, match="queue"):
        heat(40, 24, 0.2, None, None)
    for given in ("40", "x", cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, 4), None):
        with pytest.raises(LaunchError, match="argument 2.*int32"):
            heat(queue, 1, given, 0.2, None, None)
    for given in (2**31, 2**40, np.uint32(2**31), -2**31 - 1):
        with pytest.raises(LaunchError, match="argument 2.*int32"):
            heat(queue, 1, given, 0.2, None, None)
    with pytest.raises(LaunchError, match="argument 3.*float32"):
        heat(queue, 1, 1, "0.2", None, None)
    with pytest.raises(LaunchError, match="argument 4 is a list"):
        heat(queue, 1, 1, 0.2, [1], [2])
    with pytest.raises(LaunchError, match="argument 1 is 1.5"):
        heat(queue, 1.5, 1, 0.2, None, None)


@pytest.mark.filterwarnings("error")  # an exception in __del__ is one
def test_a_kernel_whose_arguments_are_refused_can_be_deleted():
    with pytest.raises(TypeError, match="wisdm"):
        Kernel(HEAT, wisdm="w")
    gc.collect()
