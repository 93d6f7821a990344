"""Problems of several kernels made in Python, and rounds that an application runs itself."""

import pathlib

import numpy as np
import pytest

import ergotune

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "examples" / "several"
if not any(device["backend"] == "opencl" for device in ergotune.devices()):
    pytest.skip("no OpenCL device", allow_module_level=True)


def pipeline(before=""):
    text = before + (FOLDER / "pipeline.cl").read_text()
    problem = ergotune.Problem("pipeline")
    problem.set_constants({"N": 4096, "REPEAT": 4})
    problem.add_kernel("scale")
    problem.set_source("opencl", text, "scale")
    problem.add_options(["-DSCALE=1"])
    problem.add_buffer("x", np.ones(4096, np.float32))
    problem.add_buffer("y", np.zeros(4096, np.float32), access="write")
    problem.add_scalar("step", "k", "int32")
    problem.set_launch(global_size=["N"], block=["BLOCK"])
    problem.add_parameter("scale.BLOCK", [64, 128])
    problem.add_kernel("blur")
    problem.set_source("opencl", text, "blur")
    problem.add_options(["-DBLUR=1"])
    problem.use_buffer("y")
    problem.add_buffer("z", np.zeros(4096, np.float32), access="write")
    problem.set_launch(global_size=["N"], block=["BLOCK"])
    problem.add_parameter("blur.BLOCK", [64, 128])
    problem.set_workload([{"for": "k", "to": 3, "steps": [{"kernel": "scale"}]}, {"kernel": "blur", "launches": 2}])
    return problem


def test_a_problem_made_in_python_is_tuned():
    seen = {}

    def right(actual, expected):
        seen.update(actual)
        return bool(np.allclose(actual["y"], 4) and np.allclose(actual["z"], 4))  # 2 x + k, k is 2 at last

    result = ergotune.tune(pipeline(), device="opencl", strategy="brute_force", precision=0.3, verify=right, confirm=False)
    assert set(result.best) == {"scale.BLOCK", "blur.BLOCK"}
    assert {"time.scale", "time.blur"} <= set(result.best_measurement["quantities"])
    assert seen


def test_what_is_not_there_is_named():
    problem = pipeline()
    with pytest.raises(ergotune.UserError, match='no kernel "blurr".*did you mean "blur"'):
        problem.set_workload([{"kernel": "blurr"}])
    with pytest.raises(ergotune.UserError, match='unknown key "launchs"'):
        problem.set_workload([{"kernel": "blur", "launchs": 2}])
    with pytest.raises(ergotune.UserError, match="two kernels are called"):
        problem.add_kernel("blur")


def test_a_loop_is_tuned_on_the_way_and_goes_on(tmp_path):
    store = tmp_path / "s.db"
    settings = dict(device="opencl", strategy="brute_force", precision=0.5, store=str(store), max_seconds=0.02)
    session = ergotune.Session(pipeline(), bound=1e5, **settings)  # all it wants: this test has no time
    for step in range(60):
        session.write("x", np.full(4096, step, np.float32))
        row = session.next_round()
        assert row["number"] == step + 1
        assert np.allclose(session.read("y"), 2 * step + 2)
        assert np.allclose(session.read("z"), 2 * step + 2)
        if session.settled:
            break
    assert session.settled
    assert session.tried == 3  # and the default before them
    del session
    again = ergotune.Session(pipeline(), bound=1e5, **settings)
    assert again.resumed == 4
    for _ in range(12):
        again.next_round()
    assert again.settled and again.tried == 0


def test_who_goes_on_knows_what_a_trial_costs(tmp_path):
    settings = dict(device="opencl", strategy="brute_force", precision=0.5, store=str(tmp_path / "s.db"), max_seconds=0.02)
    ergotune.Session(pipeline(), **settings)  # tries the default
    again = ergotune.Session(pipeline(), bound=0.05, **settings)
    assert again.resumed == 1
    rows = [again.next_round() for _ in range(20)]  # a twentieth of 20 short rounds pays for no trial
    assert all(row["tried"] is None for row in rows)


def test_a_small_bound_is_kept():
    session = ergotune.Session(pipeline(), bound=1e-6, device="opencl", budget=4)
    rows = [session.next_round() for _ in range(40)]
    assert all(row["tried"] is None for row in rows)
    with pytest.raises(ergotune.UserError, match='no buffer "q"'):
        session.read("q")


def test_trials_can_be_the_loops_own_rounds(tmp_path):
    settings = dict(device="opencl", strategy="brute_force", store=str(tmp_path / "s.db"), own_rounds=True)
    session = ergotune.Session(pipeline(), bound=1e5, **settings)
    tried = []
    for step in range(100_000):  # rounds go on while code is compiled
        session.write("x", np.full(4096, step, np.float32))
        row = session.next_round()
        assert np.allclose(session.read("y"), 2 * step + 2)  # of trials as well: each is a round
        tried += [row["tried"]] if row["tried"] else []
        if session.settled:
            break
    assert session.settled and session.tried == len(tried) == 3
    assert session.measurement["quantities"]["time"]["provenance"] == "measured"
    del session
    assert ergotune.Session(pipeline(), bound=1e5, **settings).resumed == 4
    assert ergotune.Session(pipeline(), bound=1e5, **(settings | {"own_rounds": False})).resumed == 0, "measured in another way"


def test_own_rounds_pass_over_what_does_not_compile_and_keep_the_bound():
    session = ergotune.Session(pipeline("#if defined(BLUR) && BLOCK == 128\n#error\n#endif\n"), bound=1e5, device="opencl",
                               strategy="brute_force", own_rounds=True)
    rows = []
    while not session.settled:
        rows.append(session.next_round())
    assert session.tried == 3
    assert all(row["configuration"]["blur.BLOCK"] == 64 for row in rows) and session.best["blur.BLOCK"] == 64
    session = ergotune.Session(pipeline(), bound=1e-9, device="opencl", own_rounds=True)
    assert all(session.next_round()["tried"] is None for _ in range(40))


REFERENCE = """
void reference(const float* y, float* z) {
  for (int i = 0; i < N; ++i) {
    float sum = 0;
    for (int j = 0; j < REPEAT; ++j) sum += y[(i + j) % N];
    z[i] = FACTOR * sum / REPEAT;
  }
}"""


def with_reference(factor):
    problem = pipeline()
    problem.verify_kernel("reference", REFERENCE.replace("FACTOR", factor), relative_tolerance=1e-3)
    return problem


def test_a_single_kernel_is_held_against_its_reference():
    settings = dict(device="opencl", budget=1, precision=0.5, max_seconds=0.02)
    assert ergotune.Session(with_reference("1.0f"), **settings).best
    with pytest.raises(ergotune.UserError, match='kernel "blur" beside its reference: output "z"'):
        ergotune.Session(with_reference("1.5f"), **settings)
    with pytest.raises(ergotune.UserError, match="is for a kernel among several"):
        ergotune.Problem("one").verify_kernel("f", "void f(void) {}")


def test_what_each_kernel_owes_is_modelled():
    apart = ergotune.measure_apart(pipeline(), {"scale.BLOCK": 128}, attribute="shapley", device="opencl", precision=0.5, max_seconds=0.02)
    rounds = {row["round"]: row["quantities"]["time"]["value"] for row in apart["rounds"]}
    assert list(rounds) == ["as given", "in sequence", "scale alone", "blur alone"]
    attributed = apart["attribution"]
    assert attributed["provenance"] == "modelled"
    shares = {kernel["name"]: kernel["time"] for kernel in attributed["kernels"]}
    assert sum(share["value"] for share in shares.values()) == pytest.approx(rounds["as given"])
    assert shares["blur"]["provenance"] == "modelled"
    with pytest.raises(ergotune.UserError, match='did you mean "shapley"'):
        ergotune.measure_apart(pipeline(), attribute="shapely", device="opencl")


def test_multiprocessors_of_their_own():
    problem = pipeline()
    side_by_side = {"concurrent": ["scale", "blur"], "multiprocessors": {"scale": 1000}}
    problem.set_workload([{"for": "k", "to": 1, "steps": [side_by_side]}])
    with pytest.raises(ergotune.UserError, match="no kernel can have compute units 1 to 1000"):
        ergotune.Session(problem, device="opencl", budget=1)
