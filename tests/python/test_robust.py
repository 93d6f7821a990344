"""What must not take the interpreter with it, and what must survive a trip: each was a crash once."""

import copy
import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

import ergotune

SOURCE = "void work(float* y) { for (int i = 0; i < 1000 * n; ++i) y[i % 16] += 1; }"


def make_problem(values=(1, 2, 3)):
    problem = ergotune.Problem("work")
    problem.set_source("c", SOURCE, "work")
    problem.add_buffer("y", np.zeros(16, np.float32), "read_write")
    problem.add_parameter("n", values)
    return problem


def tune(problem=None, **more):
    settings = {"device": "host", "strategy": "brute_force", "confirm": False, "precision": 0.5, **more}
    return ergotune.tune(problem or make_problem(), **settings)


class Listed:
    """Asks for what it is given."""

    def __init__(self, indices):
        self.left = list(indices)

    def ask(self, count):
        taken, self.left = self.left[:count], self.left[count:]
        return taken

    def tell(self, index, values, ok):
        pass


def test_messages_that_are_no_utf8_are_read(tmp_path):
    (tmp_path / "k.c").write_bytes(b"#if n == 2\n#error caf\xe9\n#endif\nvoid work(float* y) { y[0] += 1; }\n")
    (tmp_path / "p.toml").write_text("""
name = "p"
parameters = { n = [1, 2] }
[kernel]
function = "work"
arguments = [{ name = "y", type = "float32", count = 16, access = "read_write" }]
source = { c = "k.c" }
""")
    failed = [m for m in tune(str(tmp_path / "p.toml")).measurements if m["status"] == "compile_error"]
    assert len(failed) == 1 and "caf" in failed[0]["message"]


def test_a_strategy_may_keep_its_space():
    kept = []
    ergotune.register_strategy("keeps", lambda space, seed, options: kept.append(space) or Listed([0, 1, 2]))
    tune(strategy="keeps")
    gc.collect()
    assert len(kept[0]) == 3 and [kept[0][i]["n"] for i in range(3)] == [1, 2, 3]
    assert kept[0].neighbours(0)


@pytest.mark.parametrize("index", [-1, 3, 10**12])
def test_an_index_that_is_not_there_is_the_strategys_mistake(index):
    ergotune.register_strategy(f"asks{index}", lambda space, seed, options: Listed([index]))
    with pytest.raises(ergotune.UserError, match=f"asked for configuration {index}"):
        tune(strategy=f"asks{index}")


def test_tells_of_the_wrong_length_are_refused():
    space = ergotune.SearchSpace(make_problem())
    strategy = ergotune.Strategy("nsga2", space, objectives=2)
    index = strategy.ask(1)[0]
    for values in ([], [1.0], [1.0, 2.0, 3.0]):
        with pytest.raises(ValueError, match="2 values"):
            strategy.tell(index, values)
    with pytest.raises(IndexError):
        strategy.tell(99, [1.0, 2.0])
    strategy.tell(index, [1.0, 2.0])
    strategy.tell(strategy.ask(1)[0], [], ok=False)


def test_sigint_is_pythons_again_after_tunes_that_overlap():
    before = signal.getsignal(signal.SIGINT)
    threads = [threading.Thread(target=tune) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert signal.getsignal(signal.SIGINT) is before
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(100):
            threading.Event().wait(0.01)


class Interrupts(ergotune.Observer):
    def before_start(self):
        raise KeyboardInterrupt


def test_a_keyboard_interrupt_in_a_callable_is_one():
    with pytest.raises(KeyboardInterrupt):
        tune(observers=[Interrupts()])

    def verify(actual, expected):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(verify=verify)


def _tune_in_child(queue):
    queue.put(len(tune(in_process=True)))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_child_process_tunes_after_its_parent_did(method):
    tune(in_process=True)
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    child = context.Process(target=_tune_in_child, args=(queue,))
    child.start()
    try:
        assert queue.get(timeout=60) == 3
    finally:
        child.join(10)
        child.kill()


def test_problems_and_spaces_pickle():
    problem = make_problem()
    problem.restrict("n != 2")
    there = pickle.loads(pickle.dumps(problem))
    assert there.to_t1() == problem.to_t1()
    assert [c["n"] for c in tune(there).configurations] == [1, 3]
    space = ergotune.SearchSpace(problem)
    other = pickle.loads(pickle.dumps(space))
    assert [other[i] for i in range(len(other))] == [space[i] for i in range(len(space))]
    assert len(copy.deepcopy(space)) == 2
    problem.restrict(lambda p: p["n"] > 0)
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(problem)


def test_either_byte_order_is_read():
    problem = ergotune.Problem("copy")
    problem.set_source("c", "void copy(float* y, const float* x) { for (int i = 0; i < n; ++i) y[i] = x[i]; }", "copy")
    problem.add_buffer("y", np.zeros(4, np.float32), "write")
    problem.add_buffer("x", np.arange(4, dtype=">f4"))
    problem.add_parameter("n", [4])
    seen = []
    tune(problem, verify=lambda actual, expected: seen.append(actual["y"].copy()) or True)
    np.testing.assert_array_equal(seen[0], np.arange(4))


def test_an_objective_that_is_not_there_is_said():
    with pytest.raises(ergotune.UserError, match="nope"):
        tune(objective="nope")


def test_ones_own_strategy_takes_options():
    got = []
    ergotune.register_strategy("optional", lambda space, seed, options: got.append(options) or Listed([0]),
                               options={"width": 3, "name": "x"})
    tune(strategy="optional", strategy_options={"width": 5})
    assert got == [{"width": 5, "name": "x"}]
    with pytest.raises(ergotune.UserError, match="nosuch"):
        tune(strategy="optional", strategy_options={"nosuch": 5})


def test_words_of_an_observer_are_no_quantities():
    class Words(ergotune.Observer):
        def get_results(self):
            return {"word": "text", "table": {"a": 1}, "number": 2.5, "readings": [1.0, 3.0]}

    quantities = tune(observers=[Words()]).measurements[0]["quantities"]
    assert quantities["number"]["value"] == 2.5 and quantities["readings"]["value"] == 2.0
    assert "word" not in quantities and "table" not in quantities


GROWTH = """
import os, resource, sys, ergotune
device, first, more = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
problem = ergotune.Problem("p"); problem.set_source("c", "void f(void) {}", "f"); problem.add_parameter("n", [1, 2])
def state():
    return (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")))
def run(times):
    for _ in range(times): ergotune.tune(problem, device=device, strategy="brute_force", confirm=False, precision=0.5)
    return state()
print(*(after - before for before, after in zip(run(first), run(more))))
"""


@pytest.mark.parametrize("device, first, more", [("sim:a100", 100, 900), ("host", 3, int(os.environ.get("ERGOTUNE_TUNES", 12)))])
def test_many_tunes_do_not_grow(device, first, more):
    """ERGOTUNE_TUNES=1000 for as many live ones."""
    run = subprocess.run([sys.executable, "-c", GROWTH, device, str(first), str(more)], env=os.environ, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    memory, descriptors, threads = map(int, run.stdout.split())
    assert memory < 4096 and descriptors == 0 and threads == 0, (memory, "kB", descriptors, threads)
