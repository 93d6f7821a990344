"""ergotune.temperature: the command's study from Python. What it measures is tested live in tests/integration."""

import json
import os
import sys

import pytest

import ergotune


def test_every_keyword_reaches_the_command(tmp_path, monkeypatch):
    stub = tmp_path / "ergotune"
    stub.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    stub.chmod(0o755)
    monkeypatch.setenv("ERGOTUNE_COMMAND", str(stub))
    words = ergotune.temperature(tmp_path / "p.toml", {"tile": 2}, runs=50, seconds=90, rest=5, every=10, at=45,
                                 csv=tmp_path / "t.csv", figure="t.svg", keep=False, device="cuda:0", sensor="nvml:0", control="nvml:0")
    given = dict(zip(words[3::2], words[4::2]))
    assert words[:3] == ["temperature", str(tmp_path / "p.toml"), "--json"] and words[-1] == "--dry-run"
    assert json.loads(given.pop("--config")) == {"tile": 2}
    assert given == {"--runs": "50", "--rest": "5", "--every": "10", "--seconds": "90", "--at": "45", "--csv": str(tmp_path / "t.csv"),
                     "--figure": "t.svg", "--device": "cuda:0", "--sensor": "nvml:0", "--control": "nvml:0"}
    assert ergotune.temperature("p.toml")[-1] == "{}"


@pytest.mark.skipif("ERGOTUNE_COMMAND" not in os.environ, reason="the package's own command is looked for")
def test_a_mistake_is_raised_with_its_words(tmp_path):
    problem = tmp_path / "p.toml"
    problem.write_text('name = "p"\n[parameters]\ntile = [1]\n[kernel]\nfunction = "work"\n[kernel.source.c]\n'
                       'text = "void work(void) {}"\n')
    with pytest.raises(ergotune.UserError, match="a simulation or a recording has no temperature"):
        ergotune.temperature(problem, device="sim:a100")
    with pytest.raises(ergotune.UserError, match="at least 8"):
        ergotune.temperature(problem, runs=2)
