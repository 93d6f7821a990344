"""Online tuning held against its promises, on a loop of short rounds (examples/several/lud.toml).

    online.py [--rounds 2000] [--budget 5] [--device opencl] [--own-rounds]

Two sessions in one process run their rounds in turns: one stays with the default configuration, the other tunes. What else the
machine does meets both. Prints as JSON: the whole time of the tuned loop over that of the default's at the end and at its worst
(after every round), the same with the time that each session took to open; how fast rounds with the end's configuration are
beside those with what offline tuning finds with as many evaluations; and that a process that is killed leaves what it has tried.
"""
import argparse
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

import ergotune

PROBLEM = str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "several" / "lud.toml")


def timed(function):
    begin = time.perf_counter()
    result = function()
    return time.perf_counter() - begin, result


def side_by_side(rounds, settings, own_rounds):
    opened_default, default = timed(lambda: ergotune.Session(PROBLEM, bound=1e-9, own_rounds=own_rounds, **settings))
    opened_tuned, tuned = timed(lambda: ergotune.Session(PROBLEM, bound=0.05, own_rounds=own_rounds, **settings))
    spent = plain = worst = 0.0
    trials = []
    for number in range(1, rounds + 1):
        seconds, row = timed(tuned.next_round)
        spent += seconds
        seconds, untouched = timed(default.next_round)
        plain += seconds
        assert untouched["tried"] is None
        if row["tried"]:
            trials.append({"round": number, "configuration": row["tried"], "ratio": spent / plain})
        if number >= 20:  # a ratio of a handful of rounds is their noise
            worst = max(worst, spent / plain)
    return tuned, {"ratio": spent / plain, "worst_ratio": worst, "own_worst_ratio": tuned.worst_ratio, "trials": trials,
                   "opened": {"tuned": opened_tuned, "default": opened_default},
                   "ratio_with_opening": (spent + opened_tuned) / (plain + opened_tuned)}


def fixed(configuration, settings):
    """A session whose rounds have this configuration."""
    text = pathlib.Path(PROBLEM).read_text().replace("BLOCK = [2, 4, 8, 16, 32]", f"BLOCK = [{configuration['lud.BLOCK']}]")
    folder = pathlib.Path(PROBLEM).parent
    with tempfile.NamedTemporaryFile("w", suffix=".toml", dir=folder) as file:
        file.write(text)
        file.flush()
        return ergotune.Session(file.name, bound=1e-9, **settings)


def beside_offline(end, settings, budget):
    offline = ergotune.tune(PROBLEM, budget=budget, confirm=False, **{k: v for k, v in settings.items() if k != "budget"})
    sessions = [fixed(end, settings), fixed(offline.best, settings)]
    times = [[], []]
    for _ in range(200):
        for session, list_ in zip(sessions, times):
            list_.append(timed(session.next_round)[0])
    return {"online": end, "offline": offline.best, "round_online": statistics.median(times[0]),
            "round_offline": statistics.median(times[1])}


CHILD = """
import sys, ergotune
session = ergotune.Session({problem!r}, bound={bound}, store={store!r}, **{settings!r})
print("resumed", session.resumed, flush=True)
for _ in range({rounds}):
    row = session.next_round()
    if row["tried"]:
        print("tried", row["tried"], flush=True)
    if session.settled:
        break
print("settled", session.settled, session.best, flush=True)
"""


def killed(settings, rounds):
    with tempfile.TemporaryDirectory() as folder:
        source = CHILD.format(problem=PROBLEM, bound=10.0, store=f"{folder}/s.db", settings=settings, rounds=rounds)
        first, tried = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True), []
        for line in first.stdout:
            if line.startswith("tried"):
                tried.append(line.strip())
            if len(tried) == 2:
                first.send_signal(signal.SIGKILL)
                break
        first.wait()
        again = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True).stdout.splitlines()
    more = [line for line in again if line.startswith("tried")]
    return {"killed_after": tried, "then": again, "tried_twice": sorted(set(tried) & set(more))}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--budget", type=int, default=5)
    parser.add_argument("--device", default="opencl")
    parser.add_argument("--own-rounds", action="store_true", help="trials are the loop's own rounds; compares nothing else")
    arguments = parser.parse_args()
    settings = {"device": arguments.device, "budget": arguments.budget, "strategy": "random", "precision": 0.2,
                "max_seconds": 0.1}
    tuned, document = side_by_side(arguments.rounds, settings, arguments.own_rounds)
    document["end"] = end = tuned.best
    del tuned
    if not arguments.own_rounds:
        document |= beside_offline(end, settings, arguments.budget)
        document["killed"] = killed(settings, arguments.rounds)
    print(json.dumps(document, indent=1))


if __name__ == "__main__":
    main()
