"""The notebooks of the documentation, what a notebook shows of a result, and when progress is printed."""

import re
import sys
from pathlib import Path

import pytest

import ergotune

ROOT = Path(__file__).parents[2]
GEMM = str(ROOT / "examples/vector_add/vector_add.toml")


@pytest.mark.parametrize("path", sorted((ROOT / "docs/tutorials").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_its_code_gives(path):
    """After a change: jupyter execute --inplace docs/tutorials/*.ipynb, on an idle machine."""
    import nbclient
    import nbformat

    def shown(notebook):
        return [{(output.output_type, *sorted(output.get("data", {}))) for output in cell.outputs if output.get("name") != "stderr"}
                for cell in notebook.cells if cell.cell_type == "code"]

    notebook = nbformat.read(path, as_version=4)
    committed = shown(notebook)
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(path.parent)}}).execute()
    assert shown(notebook) == committed and any(committed)


def executed(*cells, **options):
    """The outputs of each cell of a notebook."""
    import nbclient
    import nbformat.v4

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", **options).execute()
    return [cell.outputs for cell in notebook.cells]


def test_a_cell_that_ends_with_watch_shows_the_page_once(tmp_path):
    ergotune.tune(GEMM, device="sim:a100", budget=3, store=tmp_path / "r.db")
    first, again, table = ([output for output in outputs if output.output_type in ("display_data", "execute_result")] for outputs in executed(
        f"import ergotune; page = ergotune.watch({str(tmp_path / 'r.db')!r}); page", "page", f"ergotune.watch({str(tmp_path / 'r.db')!r}, page=False)"))
    assert len(first) == 1 and "iframe" in first[0].data["text/html"]
    assert len(again) == 1 and "iframe" in again[0].data["text/html"]
    assert len(table) == 1 and "iframe" not in table[0].data["text/html"]


def test_a_restriction_that_fails_in_a_notebook_names_its_line():
    outputs = executed("import ergotune\ndef divides(a):\n    return a % missing == 0", "try:\n    ergotune.tune_callable(lambda a: a, {'a': [1, 2]}, "
                       "restrictions=divides, device='host')\nexcept ValueError as error:\n    print(error)")
    message = "".join(output.text for output in outputs[1])
    assert all(part in message for part in ("divides", "NameError", "missing", "In[1]", "line 3"))
    assert message.count("line") == 1 and "\n" not in message.strip()


def test_a_result_shows_value_interval_gain_and_provenance():
    result = ergotune.tune(GEMM, device="sim:a100", objective="energy", budget=12)
    shown = result._repr_html_()
    energy = result.best_measurement["quantities"]["energy"]
    assert f"{energy['value']:.5g} ± {energy['half_width']:.2g}" in shown
    assert "simulated" in shown and "measured" not in shown.replace("simulated", "")
    ratio = float(shown.partition("<th>gain</th><td>")[2].split("x")[0])
    assert ratio >= 1, "the best is no worse than the median"
    assert str(result.best["block_size_x"]) in shown


def test_a_result_shows_a_quantity_of_the_objective_once():
    shown = ergotune.tune(GEMM, device="sim:a100", objective="energy subject to time <= 2 * best(time)", budget=4)._repr_html_()
    assert shown.count("<th>time (s)</th>") == 1


SUM = """
name = "sum"
[parameters]
STEP = [1, 2, 4]
[kernel]
function = "sum"
[kernel.source.c]
text = '''
void sum(float* x) { for (int i = 0; i < 20000; i += STEP) for (int j = 0; j < STEP; ++j) x[i + j] = 1.0f / (i + j + 1); }
'''
[[kernel.arguments]]
name = "x"
type = "float32"
count = 20000
access = "write"
"""


@pytest.fixture(scope="module")
def measured():
    problem = ergotune.parse_problem(SUM)
    problem.add_metric("rate", "20000 / time", "1/s")
    return ergotune.tune(problem, device="host", min_repeats=3, precision=0.9)


def row(shown, name):
    return shown.partition(f"<th>{name}</th><td>")[2].partition("</td>")[0]


def test_a_result_shows_whether_its_best_is_confirmed(measured):
    assert f"{100 * measured.probability_best:.0f} %" in row(measured._repr_html_(), "confirmed")
    assert row(measured._repr_html_(), "confirmed") in str(measured).replace("&lt;", "<")
    once = ergotune.tune(ergotune.parse_problem(SUM), device="host", confirm=False)
    assert once.probability_best is None and row(once._repr_html_(), "confirmed")
    assert not row(ergotune.tune(GEMM, device="sim:a100", budget=4)._repr_html_(), "confirmed"), "simulated values are not confirmed"


def test_no_other_reason_is_given_where_only_one_configuration_works():
    def same(n):
        return n

    def confirmed(**options):
        result = ergotune.tune_callable(same, {"n": [1, 2]}, in_process=True, device="host", min_repeats=2, precision=0.9, quiet=True, **options)
        return row(result._repr_html_(), "confirmed")

    alone = confirmed()
    assert alone.startswith("no") and "budget" not in alone
    assert confirmed(confirm=False) == alone != confirmed(confirm=False, verify=False)


def test_a_result_warns_where_rivals_are_as_good(measured, monkeypatch):
    short = {p: [monkeypatch.setattr(measured, "probability_best", p), row(measured._repr_html_(), "confirmed")][1] for p in (0.59, 0.61)}
    assert len(short[0.59]) > len(short[0.61])


def test_a_metric_has_its_unit_and_interval(measured):
    rate = measured.best_measurement["metrics"]["rate"], measured.best_measurement["metric_half_widths"]["rate"]
    assert row(measured._repr_html_(), "rate (1/s)").startswith(f"{rate[0]:.5g} ± {rate[1]:.2g}")


def test_an_interval_wider_than_its_value_is_no_interval(measured, monkeypatch):
    monkeypatch.setitem(measured.best_measurement["quantities"]["time"], "half_width", 2 * measured.best_measurement["quantities"]["time"]["value"])
    assert "±" not in row(measured._repr_html_(), "time (s)")
    assert str(measured.confirmation_repeats) in row(measured._repr_html_(), "time (s)").partition("(")[2], "what the value is the mean of"


def test_a_result_shows_a_status_that_is_not_ok(measured, monkeypatch):
    monkeypatch.setitem(measured.best_measurement, "status", "not_converged")
    assert row(measured._repr_html_(), "status").startswith("not_converged in the search"), "its message is of the search"


def test_a_result_shows_that_its_best_is_verified(measured):
    assert row(measured._repr_html_(), "verified") and row(measured._repr_html_(), "verified") in str(measured)
    assert not row(ergotune.tune(GEMM, device="sim:a100", budget=2)._repr_html_(), "verified"), "nothing ran"


def test_a_table_names_what_it_needs(measured, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install"):
        measured.to_pandas()
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        measured.plot()


def test_a_result_without_a_best_shows_the_commonest_failure():
    failed = ergotune.tune(ergotune.parse_problem(SUM.replace("float* x", "flaot* x")), device="host")
    for shown in (failed._repr_html_(), str(failed), repr(failed)):
        assert "compile_error" in shown and "flaot" in shown


def test_a_table_has_intervals_messages_and_confirmations(measured):
    frame = measured.to_pandas()
    best = frame.loc[frame.STEP == measured.best["STEP"]].iloc[0]
    assert best.time_half_width == measured.best_measurement["quantities"]["time"]["half_width"]
    assert best.rate_half_width == measured.best_measurement["metric_half_widths"]["rate"] and best.message == ""
    assert best.confirmed == measured.confirmation_repeats > 0 and "warnings" in frame and best.provenance == "measured"
    assert not any(name.endswith("_half_width") for name in measured.to_numpy().dtype.names)


def test_a_stored_session_is_the_same_table(tmp_path):
    store = tmp_path / "s.db"
    frame = ergotune.tune(ergotune.parse_problem(SUM), device="host", min_repeats=3, precision=0.9, store=store).to_pandas()
    recording = ergotune.load_recording(store)
    stored = recording.to_pandas()
    assert set(stored.columns) == set(frame.columns)
    assert sorted(zip(stored.STEP, stored.time, stored.confirmed)) == sorted(zip(frame.STEP, frame.time, frame.confirmed))
    measurement = recording.measurement(0)
    assert recording.provenance == measurement["quantities"]["time"]["provenance"] == "measured" and measurement["finished_at"] > 0
    assert "measured" in repr(recording) and "sum" in repr(recording)


def test_a_stored_session_is_a_result(tmp_path):
    store = tmp_path / "s.db"
    result = ergotune.tune(ergotune.parse_problem(SUM), device="host", min_repeats=3, precision=0.9, store=store)
    stored = ergotune.show(store, top=1)
    assert isinstance(stored, ergotune.Result) and stored.best == result.best and len(stored) == len(result)
    assert stored.best_measurement == result.best_measurement and stored.probability_best == result.probability_best
    assert row(stored._repr_html_(), "confirmed") == row(result._repr_html_(), "confirmed")
    assert stored.to_pandas().equals(result.to_pandas()) and "sum" in repr(stored)
    assert stored["best"]["configuration"] == result.best and "sessions" in stored and stored.get("sizes") is None
    assert dict(stored) == stored.document
    with pytest.raises(TypeError):
        list(stored)
    assert ergotune.show(store, top=0).best == result.best


def test_tables_mark_the_default(tmp_path):
    problem = ergotune.parse_problem(SUM.replace("[1, 2, 4]", "{ values = [1, 2, 4], default = 2 }"))
    store = tmp_path / "s.db"
    result = ergotune.tune(problem, device="host", min_repeats=3, precision=0.9, store=store)
    for frame in (result.to_pandas(), ergotune.load_recording(store).to_pandas(), ergotune.show(store).to_pandas()):
        assert frame.default.sum() == 1 and frame[frame.default].STEP.iloc[0] == 2
        assert frame[frame.default].time.iloc[0] == result.default_measurement["quantities"]["time"]["value"]
    csv, header = tmp_path / "s.csv", tmp_path / "s.h"
    ergotune.export_results(store, csv, format="csv")
    assert ergotune.show(csv)["default"]["configuration"] == result["default"]["configuration"]
    ergotune.export_results(store, header, format="header")
    gain = result["gain"]  # left out where a value is uncertain
    assert gain["half_width"] is None or f"{gain['value']:.2f} +-{gain['half_width']:.2g} times" in header.read_text()


def test_progress_counts_what_was_known(tmp_path, monkeypatch, capsys):
    given = dict(device="sim:a100", strategy="random", store=tmp_path / "s.db", confirm=False)
    ergotune.tune(GEMM, budget=5, **given)
    seen = []
    again = ergotune.tune(GEMM, budget=12, progress=lambda *progress: seen.append(progress), **given)
    assert again.resumed == 5 and len(seen[-1]) == 5
    assert seen[-1][0] == seen[-1][1] == 12, "what was known and measured is all there is"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    ergotune.tune(GEMM, budget=15, **given)
    assert re.search(r"15/15 configurations \(12 known\)", capsys.readouterr().err)


def test_a_replay_of_simulated_values_is_simulated(tmp_path):
    store = tmp_path / "s.db"
    ergotune.tune(GEMM, device="sim:a100", budget=5, store=store)
    replayed = ergotune.tune(GEMM, device=f"replay:{store}", budget=5)
    assert "simulated" in str(replayed)
    assert {q["provenance"] for m in replayed.measurements for q in m["quantities"].values()} == {"simulated"}
    csv, imported = tmp_path / "s.csv", tmp_path / "imported.db"
    ergotune.export_results(store, csv, format="csv")
    ergotune.import_results(csv, store=imported)
    for file in (csv, imported):
        assert ergotune.show(file)["provenance"] == "simulated" and "A100" in ergotune.show(file)["device_name"]


def test_a_result_escapes_names():
    problem = ergotune.load_problem(GEMM)
    problem.name = "<script>"
    shown = ergotune.tune(problem, device="sim:a100", budget=2)._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;" in shown


def test_a_maximised_objective_gains_too():
    result = ergotune.tune(GEMM, device="sim:a100", objective="max power", budget=12)
    assert float(result._repr_html_().partition("<th>gain</th><td>")[2].split("x")[0]) >= 1


def test_notes_are_printed_on_a_terminal(tmp_path, monkeypatch, capsys):
    problem = ergotune.load_problem(GEMM)
    given = dict(device="sim:a100", budget=3, store=tmp_path / "s.db")
    ergotune.tune(problem, **given)
    problem.restrict("block_size_x > 16")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    notes = ergotune.tune(problem, **given).notes
    shown = capsys.readouterr().err
    assert "new session" in notes[0] and shown.index(notes[0]) < shown.index("configurations, ")
    assert all(shown.count(f"note: {note}") == 1 for note in notes)
    problem.restrict("block_size_x > 32")
    ergotune.tune(problem, **given, quiet=True)
    assert capsys.readouterr().err == ""


def test_progress_is_printed_on_a_terminal_alone(monkeypatch, capsys):
    ergotune.tune(GEMM, device="sim:a100", budget=3)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    ergotune.tune(GEMM, device="sim:a100", budget=3)
    shown = capsys.readouterr().err
    assert "/" in shown and re.search(r"best [0-9.e-]+ s\b", shown)
    ergotune.tune(GEMM, device="sim:a100", budget=3, quiet=True)
    assert capsys.readouterr().err == ""
