"""The notebooks of the documentation, what a notebook shows of a result, and when progress is printed."""

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


def test_a_result_escapes_names():
    problem = ergotune.load_problem(GEMM)
    problem.name = "<script>"
    shown = ergotune.tune(problem, device="sim:a100", budget=2)._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;" in shown


def test_a_maximised_objective_gains_too():
    result = ergotune.tune(GEMM, device="sim:a100", objective="max power", budget=12)
    assert float(result._repr_html_().partition("<th>gain</th><td>")[2].split("x")[0]) >= 1


def test_progress_is_printed_on_a_terminal_alone(monkeypatch, capsys):
    ergotune.tune(GEMM, device="sim:a100", budget=3)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    ergotune.tune(GEMM, device="sim:a100", budget=3)
    assert "/" in capsys.readouterr().err
    ergotune.tune(GEMM, device="sim:a100", budget=3, quiet=True)
    assert capsys.readouterr().err == ""
