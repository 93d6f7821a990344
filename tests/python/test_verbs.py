"""Functions that are verbs of the command: the same documents, without starting it, and the same mistakes."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

import ergotune
from ergotune import _core

ROOT = Path(__file__).parents[2]
GEMM = ROOT / "examples/clocks/simulated_gemm.toml"


@pytest.fixture
def command(tmp_path):
    program = os.environ.get("ERGOTUNE_COMMAND", str(ROOT / "build/release/ergotune"))

    def run(*arguments):
        done = subprocess.run([program, *map(str, arguments)], cwd=tmp_path, capture_output=True, text=True)
        return done.returncode, json.loads(done.stdout) if done.returncode == 0 and "--json" in arguments else done.stderr

    return run


def test_model_of_a_device_and_of_a_file(command, tmp_path):
    lines = []
    figure = tmp_path / "power.svg"
    document = ergotune.model("sim:a100", clocks=6, figure=figure, progress=lines.append)
    assert document == command("model", "--device", "sim:a100", "--clocks", "6", "--json")[1]
    assert document["provenance"] == "simulated" and document["optimal_clock_mhz"]["value"] > 0
    assert figure.read_text().startswith("<svg") or "<svg" in figure.read_text()
    samples = tmp_path / "samples.csv"
    samples.write_text("clock_mhz,power_w\n" + "".join(f"{s['clock_mhz']},{s['power_w']}\n" for s in document["samples"]))
    fitted = ergotune.model(from_file=samples, share=0.2)
    assert fitted == command("model", "--from", samples, "--range", "0.2", "--json")[1]
    with pytest.raises(ergotune.UserError):
        ergotune.model(from_file=samples, share=2)
    with pytest.raises(ergotune.UserError):
        ergotune.model("sim:a100", clocks=2)
    with pytest.raises(TypeError):
        ergotune.model("sim:a100", from_file=samples)


def test_trace_and_calibrate_refuse_what_the_command_refuses(command):
    assert command("trace", GEMM, "--device", "sim:a100", "--json")[0] == 2
    with pytest.raises(ergotune.UserError, match="no power over time"):
        ergotune.trace(GEMM, {"tile": 2}, device="sim:a100")
    with pytest.raises(TypeError, match="seconds"):
        ergotune.trace(GEMM, second=2)
    assert command("calibrate", "--sensor", "nothing:here", "--json")[0] == 2
    with pytest.raises(ergotune.UserError):
        ergotune.calibrate("nothing:here")


def test_a_recording_is_a_problem_where_it_is_replayed(command, tmp_path):
    store = tmp_path / "r.db"
    ergotune.tune(GEMM, device="sim:a100", budget=20, store=store)
    recording = tmp_path / "r.json"
    assert command("export", store, "--format", "t4", "-o", recording)[0] == 0
    document = command("tune", recording, "--device", f"replay:{recording}", "--budget", "8", "--no-store", "--json")[1]
    result = ergotune.tune(recording, device=f"replay:{recording}", budget=8)
    assert result.best == document["best"]["configuration"]
    assert result.document["provenance"] == "simulated"  # as its values were
    one = ergotune.measure(recording, result.best, device=f"replay:{recording}")
    assert one["status"] == "ok"
    with pytest.raises(ergotune.UserError):
        ergotune.tune(recording, device="sim:a100")


def test_stored_results_are_compared_exported_and_imported(command, tmp_path):
    store = tmp_path / "r.db"
    for seed in (1, 2):
        ergotune.tune(GEMM, device="sim:a100", budget=10, store=store, seed=seed, strategy="random")
    sessions = f"{store}:1", f"{store}:2"
    assert ergotune.compare(*sessions) == command("compare", *sessions, "--json")[1]
    by_time = command("compare", *sessions, "--objective", "time", "--json")[1]
    assert ergotune.compare(*sessions, objective="time") == by_time
    with pytest.raises(ergotune.UserError):
        ergotune.compare(store)
    ergotune.tune(GEMM, device="sim:a100", budget=10, store=tmp_path / "e.db", objective="time", seed=3, strategy="random")
    unlike = f"{store}:1", f"{tmp_path / 'e.db'}:1"
    assert command("compare", *unlike)[0] == 2
    with pytest.raises(ergotune.UserError, match="objective"):
        ergotune.compare(*unlike)
    for pair in ergotune.compare(*unlike, objective="time")["pairs"]:
        for side in ("loss_of_a_in_b", "loss_of_b_in_a"):
            assert (pair[side] is None) == (pair[f"{side}_error"] is None)
    for format in ("kt", "t4", "csv", "header"):
        ours, theirs = tmp_path / f"ours.{format}", tmp_path / f"theirs.{format}"
        said = ergotune.export_results(store, ours, format=format)
        document = command("export", store, "--format", format, "-o", theirs, "--json")[1]
        assert ours.read_text() == theirs.read_text()
        assert said["format"] == document["format"] and said.get("rows") == document.get("rows")
    wisdom = ergotune.export_results(store, tmp_path / "wisdom", format="wisdom")
    assert len(wisdom["files"]) == 1 and Path(wisdom["files"][0]["file"]).exists()
    with pytest.raises(ergotune.UserError, match="format"):
        ergotune.export_results(store, tmp_path / "x", format="xml")
    copy = tmp_path / "copy.db"
    added = ergotune.import_results(tmp_path / "ours.t4", copy, device="mine")
    assert added["device"] == "mine" and added["added"] == added["rows"] > 0
    assert command("import", tmp_path / "ours.t4", "--store", copy, "--device", "mine", "--json")[1]["added"] == 0
    with pytest.raises(ergotune.UserError):
        ergotune.import_results(store, copy)


SIZED = """
name = "sized"
[constants]
N = 256
[parameters]
tile = [1, 2, 3, 4, 5, 6, 7, 8]
other = [1, 2]
[kernel]
function = "sized"
source = "sized.cu"
arguments = [{ name = "x", type = "float32", count = "N", access = "write" }]
[kernel.launch]
grid = ["N"]
block = [64]
[simulation]
flops = "2 * N**3"
bytes = "4 * N**2"
efficiency = "0.9 / (1 + 0.2 * abs(tile - N / 256) + 0.3 * (other - 1))"
"""


@pytest.fixture
def sized(tmp_path):
    (tmp_path / "sized.toml").write_text(SIZED)
    (tmp_path / "sized.cu").write_text('extern "C" __global__ void sized(float* x) { x[threadIdx.x] = tile; }')
    return tmp_path / "sized.toml"


def test_sizes_are_swept_as_by_the_command(command, sized, tmp_path, capsys):
    found = ergotune.tune_sizes(sized, {"N": [512, 2048]}, device="sim:a100", store=tmp_path / "a.db", tree=tmp_path / "choose.py")
    assert [(size["constants"], size["result"]["best"]["configuration"]["tile"]) for size in found["sizes"]] == [({"N": 512}, 2), ({"N": 2048}, 8)]
    by_command = command("tune", sized, "--set", "N=512,2048", "--device", "sim:a100", "--store", tmp_path / "b.db", "--json")[1]
    assert found["one_for_all"] == by_command["one_for_all"] and found["tree"] == by_command["tree"]
    choose = {}
    exec((tmp_path / "choose.py").read_text(), choose)
    assert choose["choose_sized"](N=512)["tile"] == 2 and choose["choose_sized"](N=4096)["tile"] == 8
    pairs = ergotune.tune_sizes(sized, {("N",): [256], "N": [512]}, device="sim:a100", store=tmp_path / "c.db", quiet=True)
    assert [size["constants"] for size in pairs["sizes"]] == [{"N": 512}] and not capsys.readouterr().err
    ergotune.tune_sizes(sized, {"N": [512]}, device="sim:a100", store=tmp_path / "d.db", quiet=False)
    assert "configurations" in capsys.readouterr().err


def test_mistakes_in_sizes_are_refused(sized, tmp_path):
    store = tmp_path / "a.db"
    for wrong, error in (({"Q": [1, 2]}, ergotune.UserError), ({"N": 4}, TypeError), ({}, TypeError), ({"N": "12"}, TypeError)):
        with pytest.raises(error):
            ergotune.tune_sizes(sized, wrong, device="sim:a100", store=store)
    with pytest.raises(ergotune.UserError, match="store"):
        ergotune.tune_sizes(sized, {"N": [256, 512]}, device="sim:a100")
    with pytest.raises(ergotune.Error, match="1024"):  # the size, and why
        sized.write_text(SIZED.replace("[64]", '["N * 2"]'))
        ergotune.tune_sizes(sized, {"N": [256, 1024]}, device="sim:a100", store=store)


def test_a_program_is_measured_as_by_the_command(command, tmp_path, monkeypatch):
    monkeypatch.setenv("ERGOTUNE_FORBID_CONTROLS", "1")
    lines = []
    found = ergotune.program(["sh", "-c", "exit 0"], max_seconds=0.1, precision=0.9, progress=lines.append)
    by_command = command("program", "--max-seconds", "0.1", "--precision", "0.9", "--no-store", "--json", "--", "sh", "-c", "exit 0")[1]
    assert set(found) == set(by_command) and found["why_not"] == by_command["why_not"]
    assert found["measured"]["quantities"]["time"]["value"] > 0 and found["best"] is None
    for wrong in (lambda: ergotune.program(["no-such-program"]), lambda: ergotune.program(["true"], max_slowdown=5),
                  lambda: ergotune.program(["true"], settings=1), lambda: ergotune.program(["true"], wisdom=tmp_path)):
        with pytest.raises(ergotune.UserError):
            wrong()
    with pytest.raises(TypeError):
        ergotune.program("true")


def test_kernels_are_compiled_without_running(command, sized):
    code, document = command("space", sized, "--compile", "3", "--device", "sim:h100", "--json")
    if code == 2:  # NVRTC is not installed
        with pytest.raises(ergotune.UserError):
            ergotune.compile_check(sized, "sim:h100", count=3)
    else:
        found = ergotune.compile_check(sized, "sim:h100", count=3)
        assert found["compiled"] == document["compiled"] and found["device"] == document["device"]
    with pytest.raises(ergotune.UserError):
        ergotune.compile_check(sized, "sim:nothing")
    limited = ergotune.load_problem(sized)
    limited.restrict("64 * other <= device.max_threads_per_block / 16")
    assert len(ergotune.SearchSpace(limited, device="sim:a100")) == 8
    assert len(ergotune.SearchSpace(sized, device="sim:a100")) == len(ergotune.SearchSpace(ergotune.load_problem(sized)))


def test_doctor_finds_what_the_command_finds(command):
    code, document = command("doctor", "--json")
    ours = ergotune.doctor()
    assert set(ours) == {"can_tune", "findings"} and ours["findings"]
    if code == 0:
        assert ours["can_tune"] == document["can_tune"]
        assert {f["area"] for f in ours["findings"]} == {f["area"] for f in document["findings"]}


def test_stored_results_are_shown_as_the_command_shows_them(command, tmp_path):
    store = tmp_path / "r.db"
    ergotune.tune(GEMM, device="sim:a100", budget=10, store=store)
    shown = ergotune.show(store, top=3)
    assert shown.document == command("show", store, "--top", "3", "--json")[1] and len(shown["top"]) == 3
    assert ergotune.show(store, objective="time")["objective"]["name"] == "time"
    with pytest.raises(ergotune.UserError):
        ergotune.show(tmp_path / "none.db")
    for objective in ("time", "energy"):
        ergotune.write_report(store, tmp_path / "ours.html", objective=objective)
        command("report", store, "-o", tmp_path / "theirs.html", "--objective", objective)
        assert (tmp_path / "ours.html").read_text() == (tmp_path / "theirs.html").read_text()
    assert ergotune.analyse(GEMM, device="sim:a100") == command("analyse", GEMM, "--device", "sim:a100", "--json")[1]


def test_a_problem_is_drafted_and_described(command, tmp_path):
    source = tmp_path / "scale.cu"
    source.write_text("__global__ void scale(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] *= 2; }")
    drafted = ergotune.draft_problem(source)
    assert ergotune.load_problem(drafted["problem"]).name and drafted["kernel"] == "scale"
    with pytest.raises(ergotune.UserError, match="exists"):
        ergotune.draft_problem(source)
    by_command = command("init", source, "-o", tmp_path / "other.toml", "--json")[1]
    assert (tmp_path / "other.toml").read_text() == Path(drafted["problem"]).read_text() and by_command["questions"] == drafted["questions"]
    kernel, host = tmp_path / "add.cl", tmp_path / "run.py"
    kernel.write_text("kernel void add(global float* x, int n) { int i = get_global_id(0); if (i < n) x[i] += 1; }")
    host.write_text("program.add(queue, (960,), (96,), x, np.int32(950))\n")
    assert "N_SIZE = 950" in Path(ergotune.draft_problem(kernel, host=host)["problem"]).read_text()
    command("init", kernel, host, "-o", tmp_path / "more.toml", "--json")[1]
    assert (tmp_path / "more.toml").read_text() == (tmp_path / "add.toml").read_text()
    for document in ("problem", "result"):
        program = os.environ.get("ERGOTUNE_COMMAND", str(ROOT / "build/release/ergotune"))
        assert ergotune.schema(document) == json.loads(subprocess.run([program, "schema", document], capture_output=True, text=True).stdout)
    with pytest.raises(ergotune.UserError):
        ergotune.schema("nothing")


def test_predictions_are_those_of_the_command(command, tmp_path):
    store = tmp_path / "p.db"
    ergotune.tune(GEMM, device="sim:a100", objective="energy", budget=40, store=store)
    assert ergotune.predict(store, by="time", top=3) == command("predict", store, "--by", "time", "--top", 3, "--json")[1]
    named = ergotune.predict(store, configurations=[{"block_size_x": 64}])
    assert len(named["predictions"]) == 1 and named["provenance"] == "modelled"
    with pytest.raises(ergotune.UserError):
        ergotune.predict(store, configurations=[{"block_size_x": 7}])


def test_the_help_of_each_verb_names_its_function():
    program = os.environ.get("ERGOTUNE_COMMAND", str(ROOT / "build/release/ergotune"))
    offered = re.findall(r"^  ([a-z]+)", subprocess.run([program, "--help"], capture_output=True, text=True).stdout, re.MULTILINE)
    for verb in offered:
        shown = subprocess.run([program, verb, "--help"], capture_output=True, text=True).stdout.partition("\nIn Python: ")[2]
        assert shown, verb
        for name in re.findall(r"ergotune\.(\w+)", shown):
            assert hasattr(ergotune, name) or name == "launcher", (verb, name)


def test_the_manual_has_every_name_of_the_package():
    listed = re.findall(r"auto(?:function|class|exception):: (\w+)$", (ROOT / "docs/python-api.md").read_text(), re.MULTILINE)
    assert set(listed) == set(ergotune.__all__)


def test_wisdom_gets_no_winner_that_an_interruption_left_unconfirmed(command, tmp_path):
    (tmp_path / "slow.toml").write_text("""
name = "slow"
objective = "time"
parameters = { X = "range(1, 200)" }
[kernel]
function = "slow"
arguments = [{ name = "x", type = "int32", count = 1, access = "write" }]
[kernel.source.c]
text = '''
#include <unistd.h>
void slow(int* x) { usleep(2000); x[0] = 1; }
'''
""")
    program = os.environ.get("ERGOTUNE_COMMAND", str(ROOT / "build/release/ergotune"))
    run = subprocess.Popen([program, "tune", "slow.toml", "--device", "host", "--store", "s.db", "--wisdom", "wisdom", "-q"], cwd=tmp_path,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    rows = 0
    while rows == 0 and run.poll() is None:
        time.sleep(0.1)
        try:
            with sqlite3.connect(f"file:{tmp_path / 's.db'}?mode=ro", uri=True) as store:
                rows = store.execute("SELECT count(*) FROM measurements").fetchone()[0]
        except sqlite3.OperationalError:
            pass  # not made yet
    run.send_signal(signal.SIGINT)
    said = run.communicate(timeout=60)[1]
    assert run.returncode == 0 and rows > 0, said
    assert not list((tmp_path / "wisdom").glob("*")) and "--format wisdom" in said
    assert command("export", "s.db", "--format", "wisdom", "-o", "wisdom")[0] == 0 and list((tmp_path / "wisdom").glob("*"))


def test_what_has_changed_since_a_session_is_named(command, tmp_path):
    source = tmp_path / "scale.cl"
    text = "kernel void scale(global float* a) { a[get_global_id(0)] *= 2; }\n"
    problem = """name = "scaling"
[parameters]
block = [16, 32, 64]
[kernel]
function = "scale"
source = "scale.cl"
arguments = [{ name = "a", type = "float32", count = 4096, access = "read_write" }]
[kernel.launch]
global = [4096]
block = ["block"]
"""

    def tune(*more):
        code, messages = command("tune", "p.toml", "--device", "sim:h100", "--store", "s.db", "--budget", 3, *more)
        assert code == 0, messages
        notes = [line for line in messages.splitlines() if "new session" in line]
        return notes[0] if notes else ""

    source.write_text(text)
    (tmp_path / "p.toml").write_text(problem)
    assert not tune() and not tune(), "nothing has changed"
    assert "device" in tune("--node-command", "{}"), "a session of nodes relates their devices by the default"
    source.write_text("#define MORE 1\n" + text)
    changed = tune()
    assert "scale.cl" in changed and "kernel.launch" not in changed
    assert "scale" in command("export", "s.db", "--format", "wisdom", "-o", "w")[1], "an earlier source's record is not silent"
    assert not command("export", "s.db", "--format", "wisdom", "-o", "one", "--session", 1)[1]
    source.write_text(text)
    (tmp_path / "p.toml").write_text(problem.replace("global = [4096]", "global = [2048]"))
    assert "kernel.launch" in tune()


def test_a_new_session_is_compared_with_one_of_its_size(command, tmp_path):
    (tmp_path / "scale.cl").write_text("kernel void scale(global float* a) { a[get_global_id(0)] *= 2; }\n")
    (tmp_path / "p.toml").write_text("""name = "scaling"
[constants]
N = 4096
[parameters]
block = [16, 32, 64]
[kernel]
function = "scale"
source = "scale.cl"
arguments = [{ name = "a", type = "float32", count = "N", access = "read_write" }]
[kernel.launch]
global = ["N"]
block = ["block"]
""")
    for size in 4096, 8192:
        assert command("tune", "p.toml", "--device", "sim:h100", "--store", "s.db", "--budget", 1, "--set", f"N={size}")[0] == 0
    messages = command("tune", "p.toml", "--device", "sim:h100", "--store", "s.db", "--budget", 1, "--node-command", "{}")[1]
    note = next(line for line in messages.splitlines() if "new session" in line)
    assert "session 1 " in note and "N=" not in note, "the later session has another size"


def test_every_keyword_reaches_the_study_of_temperature(tmp_path, monkeypatch):
    given = {}
    monkeypatch.setattr(_core, "temperature", lambda problem, settings, *options: given.update(settings, options=options))
    problem = ergotune.Problem("p")
    ergotune.temperature(problem, {"tile": 2}, runs=50, seconds=90, rest=5, every=10, at=45, csv=tmp_path / "t.csv", figure="t.svg",
                         keep=False, device="cuda:0", sensor="nvml:0", control="nvml:0")
    assert given["options"] == ('{"tile": 2}', 50, 90, 5, 10, 45, str(tmp_path / "t.csv"), "t.svg", False)
    assert (given["device"], given["sensors"], given["controls"]) == ("cuda:0", ["nvml:0"], ["nvml:0"])


@pytest.mark.skipif("ERGOTUNE_COMMAND" not in os.environ, reason="the package's own command is looked for")
def test_a_mistake_in_a_study_of_temperature_is_raised_with_its_message(tmp_path):
    problem = tmp_path / "p.toml"
    problem.write_text('name = "p"\n[parameters]\ntile = [1]\n[kernel]\nfunction = "work"\n[kernel.source.c]\n'
                       'text = "void work(void) {}"\n')
    with pytest.raises(ergotune.UserError, match="a simulation or a recording has no temperature"):
        ergotune.temperature(problem, device="sim:a100")
    with pytest.raises(ergotune.UserError, match="at least 8"):
        ergotune.temperature(problem, runs=2)
