"""ergotune.temperature: the study from Python. What it measures is tested live in tests/integration."""

import os

import pytest

import ergotune
from ergotune import _core


def test_every_keyword_reaches_the_study(tmp_path, monkeypatch):
    given = {}
    monkeypatch.setattr(_core, "temperature", lambda problem, settings, *options: given.update(settings, options=options))
    problem = ergotune.Problem("p")
    ergotune.temperature(problem, {"tile": 2}, runs=50, seconds=90, rest=5, every=10, at=45, csv=tmp_path / "t.csv", figure="t.svg",
                         keep=False, device="cuda:0", sensor="nvml:0", control="nvml:0")
    assert given["options"] == ('{"tile": 2}', 50, 90, 5, 10, 45, str(tmp_path / "t.csv"), "t.svg", False)
    assert (given["device"], given["sensors"], given["controls"]) == ("cuda:0", ["nvml:0"], ["nvml:0"])


@pytest.mark.skipif("ERGOTUNE_COMMAND" not in os.environ, reason="the package's own command is looked for")
def test_a_mistake_is_raised_with_its_words(tmp_path):
    problem = tmp_path / "p.toml"
    problem.write_text('name = "p"\n[parameters]\ntile = [1]\n[kernel]\nfunction = "work"\n[kernel.source.c]\n'
                       'text = "void work(void) {}"\n')
    with pytest.raises(ergotune.UserError, match="a simulation or a recording has no temperature"):
        ergotune.temperature(problem, device="sim:a100")
    with pytest.raises(ergotune.UserError, match="at least 8"):
        ergotune.temperature(problem, runs=2)
