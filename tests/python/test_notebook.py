"""What a notebook shows of a result, and when progress is printed."""

from pathlib import Path

import ergotune

GEMM = str(Path(__file__).parents[2] / "examples/vector_add/vector_add.toml")


def test_a_result_shows_value_interval_gain_and_provenance():
    result = ergotune.tune(GEMM, device="sim:a100", objective="energy", budget=12)
    shown = result._repr_html_()
    energy = result.best_measurement["quantities"]["energy"]
    assert f"{energy['value']:.5g} ± {energy['half_width']:.2g}" in shown
    assert "simulated" in shown and "measured" not in shown.replace("simulated", "")
    ratio = float(shown.partition("<th>gain</th><td>")[2].split()[0])
    assert ratio >= 1, "the best is no worse than the median"
    assert str(result.best["block_size_x"]) in shown


def test_a_result_escapes_names():
    problem = ergotune.load_problem(GEMM)
    problem.name = "<script>"
    shown = ergotune.tune(problem, device="sim:a100", budget=2)._repr_html_()
    assert "<script>" not in shown and "&lt;script&gt;" in shown


def test_a_maximised_objective_gains_too():
    result = ergotune.tune(GEMM, device="sim:a100", objective="max power", budget=12)
    assert float(result._repr_html_().partition("<th>gain</th><td>")[2].split()[0]) >= 1


def test_progress_is_printed_on_a_terminal_alone(monkeypatch, capsys):
    ergotune.tune(GEMM, device="sim:a100", budget=3)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    ergotune.tune(GEMM, device="sim:a100", budget=3)
    assert "/" in capsys.readouterr().err
    ergotune.tune(GEMM, device="sim:a100", budget=3, quiet=True)
    assert capsys.readouterr().err == ""
