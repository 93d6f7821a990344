"""Tuning on the workers of executors: the same results as here, and workers that are killed."""

import contextlib
import os
import signal
import time
from concurrent.futures import Future, ProcessPoolExecutor
from pathlib import Path

import pytest

import ergotune
from ergotune.engines import RayExecutor, Workers, serve

SLOW = """
name = "slow"
[parameters]
X = "range(1, 25)"
[kernel]
function = "slow"
arguments = []
[kernel.source.c]
text = '''
#include <unistd.h>
void slow(void) { usleep(10000 + 500 * (X > 12 ? X - 12 : 12 - X)); }
'''
"""


@pytest.fixture
def problem():
    return ergotune.parse_problem(SLOW)


def dask_cluster():
    distributed = pytest.importorskip("distributed", reason="the package dask[distributed] is not installed")
    return distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None), distributed.Client


def run(problem, executor, **settings):
    return ergotune.tune(problem, executor=executor, device="host", strategy="brute_force", early_stop=False, confirm=False,
                         precision=0.1, max_seconds=0.2, node_silence=10, **settings)


def check_complete(result):
    assert sorted(c["X"] for c in result.configurations) == list(range(1, 25))
    assert {m["status"] for m in result.measurements} <= {"ok", "not_converged"}
    assert abs(result.best["X"] - 12) <= 2


def test_processes_give_the_same_result(problem):
    with ProcessPoolExecutor(2) as pool:
        result = run(problem, pool)
        check_complete(result)
        assert len(result.devices) == 2
        assert sum(board["measured"] for board in result.devices) >= 24
        again = ergotune.tune(problem, executor=pool, device="sim:a100", budget=5, workers=1)
    assert again.evaluated == 5


def test_mistakes(problem):
    with pytest.raises(TypeError, match="submit"):
        ergotune.tune(problem, executor=4)
    with pytest.raises(TypeError, match="executor="):
        ergotune.tune(problem, workers=4)
    with ProcessPoolExecutor(1) as pool:
        with pytest.raises(TypeError, match="give one of them"):
            ergotune.tune(problem, executor=pool, node_commands=["{}"])
        with pytest.raises(ergotune.UserError, match="nothere"):
            ergotune.tune(problem, executor=pool, device="sim:nothere")


class Broken:
    max_workers = 1

    def submit(self, function, *arguments):
        future = Future()
        future.set_exception(OSError("no such queue"))
        return future


def test_an_executor_that_runs_nothing_is_reported(problem):
    with pytest.raises(ergotune.UserError, match="no such queue"):
        ergotune.tune(problem, executor=Broken(), device="sim:a100", node_silence=0.5)


def test_a_stranger_gets_no_session():
    taken = []

    class Keeping(Broken):
        def submit(self, function, *arguments):
            taken.append(arguments)
            return Future()

    with Workers(Keeping()) as commands:
        bridge = __import__("subprocess").Popen(["/bin/sh", "-c", commands[0]], stdin=-1, stdout=-1, stderr=-1)
        for _ in range(200):
            if taken:
                break
            time.sleep(0.05)
        addresses, key, ticket = taken[0]
        with pytest.raises(OSError):
            serve(addresses, b"another key", ticket)
        assert serve(addresses, key, b"another ticket") is False
        assert bridge.poll() is None
    assert bridge.wait(20) != 0
    bridge.communicate()


class Killer:
    """Kills one worker when the first results are there."""

    def __init__(self, victim):
        self.victim, self.done = victim, False

    def __call__(self, evaluated, *_):
        if evaluated >= 4 and not self.done:
            self.done = True
            os.kill(self.victim() if callable(self.victim) else self.victim, signal.SIGKILL)


def test_what_a_broken_pool_measured_is_kept(problem, tmp_path):
    store = tmp_path / "results.db"
    with ProcessPoolExecutor(2) as pool:
        killer = Killer(lambda: next(iter(pool._processes)))
        with pytest.raises(ergotune.Error):
            run(problem, pool, store=store, progress=killer)
    known = len(ergotune.load_recording(store))
    assert killer.done and 4 <= known < 24
    with ProcessPoolExecutor(2) as pool:
        result = run(problem, pool, store=store)
    check_complete(result)
    assert result.evaluated == 24 - known


def test_dask_replaces_a_killed_worker(problem):
    cluster, client_of = dask_cluster()
    with cluster, client_of(cluster) as client:
        killer = Killer(next(iter(client.run(os.getpid).values())))
        result = run(problem, client.get_executor(pure=False), progress=killer)
    assert killer.done
    check_complete(result)


def test_ray_replaces_a_killed_worker(problem, monkeypatch):
    ray = pytest.importorskip("ray", reason="the package ray is not installed")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # no token in the home folder
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        killer = Killer(lambda: parent_of_an_agent())
        result = run(problem, RayExecutor(2, num_cpus=1), progress=killer)
        assert killer.done
        check_complete(result)
    finally:
        ray.shutdown()


def parent_of_an_agent():
    """The process of a worker: an engine's own tasks know it, and /proc says whose child each agent is."""
    for folder in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if folder.name.isdigit() and (folder / "cmdline").read_bytes().endswith(b"ergotune\0agent\0"):
                worker = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
                if (Path("/proc") / str(worker) / "stat").read_text().rsplit(")", 1)[1].split()[3] != "0":
                    return worker
    raise AssertionError("no agent runs")
