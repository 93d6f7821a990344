"""ergotune's strategies inside Optuna's studies, and studies as priors."""

import pytest

import ergotune

optuna = pytest.importorskip("optuna", reason="the package optuna is not installed")

from ergotune.optuna import ErgotuneSampler, save_study  # noqa: E402

optuna.logging.set_verbosity(optuna.logging.ERROR)
VALUES = [1, 2, 4, 8, 16, 32]


def problem():
    p = ergotune.Problem("study")
    p.add_parameter("x", VALUES)
    p.add_parameter("y", VALUES)
    p.add_parameter("mode", ["a", "b"])
    p.restrict("x * y <= 128")
    return p


def suggested(trial):
    return (trial.suggest_categorical("x", VALUES), trial.suggest_int("y", 1, 32), trial.suggest_categorical("mode", ["a", "b"]))


def cost(x, y, mode):
    return 1 + abs(x - 8) + abs(y - 16) + (mode == "b")


def objective(trial):
    x, y, mode = suggested(trial)
    assert x * y <= 128  # the restriction holds in every trial
    trial.suggest_float("other", 0, 1)  # not of the space
    return cost(x, y, mode)


def test_finds_the_best_and_ends():
    study = optuna.create_study(sampler=ErgotuneSampler(problem()))
    study.optimize(objective, n_trials=500)
    size = len(ergotune.SearchSpace(problem()))
    assert size <= len(study.trials) <= size + 1
    assert (study.best_params["x"], study.best_params["y"], study.best_params["mode"]) == (8, 16, "a")


def test_fewer_trials_than_random():
    def first_best(sampler):
        study = optuna.create_study(sampler=sampler, direction="maximize")
        study.optimize(lambda trial: -objective(trial), n_trials=30)
        return study.best_value

    ours = [first_best(ErgotuneSampler(problem(), seed=seed, budget=30)) for seed in range(3)]
    assert sorted(ours)[1] >= -2


def test_several_objectives_constraints_and_threads():
    def two(trial):
        x, y, _ = suggested(trial)
        trial.set_user_attr("x", x)
        return x + y, 100 / (x * y)

    sampler = ErgotuneSampler(problem(), constraints_func=lambda trial: (trial.user_attrs["x"] - 8,))
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=sampler)
    study.optimize(two, n_trials=40, n_jobs=2)
    assert len(study.trials) == 40
    assert study.best_trials and all(trial.params["x"] <= 8 for trial in study.best_trials)
    points = [tuple(sorted(trial.params.items())) for trial in study.trials]
    assert len(set(points)) == len(points)


def test_another_study_is_a_start():
    first = optuna.create_study(sampler=ErgotuneSampler(problem(), seed=5))
    first.optimize(objective, n_trials=40)
    second = optuna.create_study(sampler=ErgotuneSampler(problem(), seed=6))
    second.add_trials(first.trials)
    second.optimize(objective, n_trials=10)
    points = [tuple(trial.params[name] for name in ("x", "y", "mode")) for trial in second.trials]
    assert len(set(points)) == 50  # what the first has tried is not tried again


def test_failures_pruned_and_enqueued_trials():
    def failing(trial):
        x, y, mode = suggested(trial)
        if x == 1:
            raise ValueError("no such thread")
        if y == 1:
            raise optuna.TrialPruned
        return cost(x, y, mode)

    study = optuna.create_study(sampler=ErgotuneSampler({"x": VALUES, "y": VALUES, "mode": ["a", "b"]}))
    study.enqueue_trial({"x": 4, "y": 4, "mode": "b"})
    study.optimize(failing, n_trials=30, catch=(ValueError,))
    assert study.trials[0].params == {"x": 4, "y": 4, "mode": "b"}
    assert study.best_params["x"] != 1


def test_space_and_suggestions_must_agree():
    study = optuna.create_study(sampler=ErgotuneSampler({"x": [100]}))
    with pytest.raises(ergotune.UserError, match="same values"):
        study.optimize(lambda trial: trial.suggest_int("x", 1, 10), n_trials=1)


def test_a_study_is_a_prior(tmp_path):
    study = optuna.create_study(sampler=ErgotuneSampler(problem()))
    study.optimize(lambda trial: 1e-3 * cost(*suggested(trial)), n_trials=60)
    file = tmp_path / "study.csv"
    assert save_study(study, file) == 60
    recording = ergotune.load_recording(file)
    assert len(recording) == 60
    assert min(recording.columns["time"]) == pytest.approx(study.best_value)
    tuned = ergotune.parse_problem(TUNED)
    first = []
    ergotune.tune(tuned, device="sim:a100", prior=[str(file)], budget=3, confirm=False,
                  progress=lambda *seen: first.append(seen))
    assert first
    with pytest.raises(ergotune.UserError):
        save_study(optuna.create_study(), file)
    with pytest.raises(ergotune.UserError):
        save_study(study, file, ["time", "energy"])


TUNED = """
name = "study"
[parameters]
x = [1, 2, 4, 8, 16, 32]
y = [1, 2, 4, 8, 16, 32]
mode = ["a", "b"]
[kernel]
function = "f"
arguments = []
[kernel.source.c]
text = "void f(void) {}"
"""
