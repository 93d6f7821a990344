"""The job script of docs/clusters.md, without Slurm: however a session ends, its store is kept and its exit code returned."""

import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs/clusters.md").read_text()
SESSION = """#!/bin/bash
trap 'exit 3' TERM
while [ $# -gt 0 ]; do [ "$1" = --store ] && store=$2; shift; done
echo results >"$store"
"""


def catches_term(pid):
    caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())[1]
    return int(caught, 16) >> (signal.SIGTERM - 1) & 1


@pytest.mark.parametrize("ending, code", [("kill -KILL $$", 137), ("while :; do sleep 0.05; done", 3)],
                         ids=["killed", "asked to end"])
def test_the_store_is_kept_however_the_session_ends(tmp_path, ending, code):
    script = re.search(r"```text\n(#!/bin/bash.*?)```", PAGE, re.DOTALL)[1]
    script = re.sub(r"^(module|source) .*\n", "", script, flags=re.MULTILINE)
    (tmp_path / "job.sh").write_text(script)
    ergotune = tmp_path / "ergotune"
    ergotune.write_text(SESSION + ending)
    ergotune.chmod(0o755)
    for folder in ("local", "submitted"):
        (tmp_path / folder).mkdir()
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TMPDIR": str(tmp_path / "local"), "SLURM_JOB_ID": "7",
                   "SLURM_SUBMIT_DIR": str(tmp_path / "submitted")}
    job = subprocess.Popen(["bash", str(tmp_path / "job.sh")], env=environment)
    try:
        if code == 3:
            while not (tmp_path / "local/gemm-7.db").exists() or not catches_term(job.pid):
                time.sleep(0.01)
            job.send_signal(signal.SIGTERM)
        assert job.wait(timeout=60) == code
    finally:
        job.kill()
    assert (tmp_path / "submitted/gemm.db").read_text() == "results\n"
