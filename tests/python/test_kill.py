"""kill -9 of a Python session: the next one goes on where it was (ERGOTUNE_KILLS: how often, 3)."""

import os
import random
import sqlite3
import subprocess
import sys
import time

PROBLEM = """
name = "counting"
[parameters]
turn = "range(1, 41)"
[kernel]
function = "work"
arguments = [
  { name = "n", type = "int32", value = 100 },
  { name = "b", type = "float32", count = 100, access = "write" },
]
[kernel.source.c]
text = '''
static volatile int sink;
void work(int n, float* b) {
  for (int i = 0; i < n; ++i) b[i] = i;
  for (int i = 0; i < 1000 * turn; ++i) sink = i;
}
'''
"""

SCRIPT = """
import ergotune
result = ergotune.tune("p.toml", device="host", strategy="random", precision=10.0, store="p.db")
print(result.evaluated, result.resumed)
"""


def rows(store):
    if not store.exists():
        return {}
    connection = sqlite3.connect(store, timeout=10)
    try:
        found = connection.execute("SELECT configuration, status FROM measurements WHERE kind = 'search'").fetchall()
    except sqlite3.OperationalError:  # its tables are not made yet
        return {}
    finally:
        connection.close()
    assert len(found) == len({configuration for configuration, _ in found}), "something was measured twice"
    return dict(found)


def test_a_killed_session_goes_on(tmp_path):
    (tmp_path / "p.toml").write_text(PROBLEM)
    (tmp_path / "tune.py").write_text(SCRIPT)
    store = tmp_path / "p.db"
    draw = random.Random(20261121)
    known = {}
    kills = int(os.environ.get("ERGOTUNE_KILLS", "3"))
    for _ in range(kills):
        session = subprocess.Popen([sys.executable, "tune.py"], cwd=tmp_path, stdout=subprocess.DEVNULL)
        time.sleep(0.3 + 1.5 * draw.random())
        session.kill()
        session.wait()
        now = rows(store)
        for configuration, status in known.items():
            assert now.get(configuration) == status, f"{configuration} was lost"
        known = now
    assert sum(status == "runtime_error" for status in known.values()) <= kills, "at most one culprit a kill"
    run = subprocess.run([sys.executable, "tune.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    evaluated, resumed = run.stdout.split()
    assert int(evaluated) + int(resumed) == 40
    assert len(rows(store)) == 40
