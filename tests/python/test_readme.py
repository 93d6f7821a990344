"""The README's Python works as it stands there."""

import re
from pathlib import Path

import ergotune.kernel_tuner as kernel_tuner

ROOT = Path(__file__).resolve().parents[2]


def blocks(heading):
    section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", (ROOT / "README.md").read_text(), re.S | re.M)
    return re.findall(r"^```python\n(.*?)^```", section.group(1), re.S | re.M), section.group(1)


def test_its_example(tmp_path, monkeypatch, capsys):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    code, text = blocks("From Python")
    assert len(code) == 1
    assert "budget=50" in code[0]
    exec(code[0].replace("budget=50", "budget=4"), {})
    printed = capsys.readouterr().out
    assert "MWG" in printed and float(printed.split()[-1]) > 0
    assert "import ergotune.kernel_tuner as kernel_tuner" in text and callable(kernel_tuner.tune_kernel)
