"""Rounds of an application on a fake GPU whose clocks are tuned while the application runs."""

import numpy as np
import pytest

import ergotune


def loop(source, clocks, **settings):
    """A session of rounds that take 12 + 3 (tile - 2)^2 million cycles each."""
    problem = ergotune.Problem("rounds")
    problem.set_source("c", source, "work")
    problem.add_parameter("tile", [1, 2])
    problem.add_execution_parameter("core_clock_mhz", clocks)
    problem.add_buffer("b", np.zeros(16, np.float32), access="write")
    return ergotune.Session(problem, device="host", sensors=["nvml:0/energy"], own_rounds=True,
                            strategy="brute_force", **settings)


def test_a_loop_needs_less_energy_at_its_end(board, tmp_path):
    before = board()
    session = loop(board.source, [1410, 810], controls="nvml:0", objective="energy", bound=1, store=str(tmp_path / "s.db"))
    rows, highest = [], 0.0
    while not session.settled or session.ratio > 1:
        rows.append(session.next_round())
        highest = max(highest, session.ratio)
        assert len(rows) < 8000
    energies = session.measurement["quantities"]
    assert session.best == {"tile": 2, "core_clock_mhz": 810} == rows[-1]["configuration"]
    assert rows[0]["configuration"] == {"tile": 1, "core_clock_mhz": 1410} and session.tried == 3
    assert energies["energy"]["sensor"] == "nvml:0/energy" and energies["energy"]["provenance"] == "measured"
    assert highest == session.worst_ratio <= 2
    locked = board()
    assert locked != before and locked[0] == 1, "the best clock is in force while the loop runs"
    del session
    assert board() == before, "and is taken back"
    again = loop(board.source, [1410, 810], controls="nvml:0", objective="energy", bound=1, store=str(tmp_path / "s.db"))
    assert again.settled or again.next_round()["configuration"]["core_clock_mhz"] == 810
    assert again.resumed == 4


def test_what_own_rounds_cannot_do_is_refused(board, monkeypatch):
    session = loop(board.source, [1410, 810], controls="nvml:0", objective="min temperature", bound=1)
    with pytest.raises(ergotune.UserError, match="temperature"):
        for _ in range(1000):
            session.next_round()
    del session
    with pytest.raises(ergotune.UserError, match="compare_plans"):
        loop(board.source, [1410, 810], controls="nvml:0", objective="energy", plan="guerreiro")
    monkeypatch.setenv("ERGOTUNE_SYSFS_ROOT", "/nonexistent")  # the host has no clocks to set
    with pytest.raises(ergotune.UserError, match="clocks"):
        loop(board.source, [1410, 810], objective="energy")
