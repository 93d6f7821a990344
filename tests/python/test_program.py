"""Problems whose kernel is a whole program."""

import ergotune

PROBLEM = """
name = "echo"
objective = "max rate"
[parameters]
A = [1, 2, 3]
[program]
command = ["sh", "-c", "echo rate: {{A * 10}}"]
output = { rate = 'rate: ([0-9]+)' }
check = '^rate'
"""


def test_a_program_is_tuned_and_found_again(tmp_path):
    file = tmp_path / "echo.toml"
    file.write_text(PROBLEM)
    settings = dict(store=str(tmp_path / "e.db"), strategy="brute_force", max_seconds=0.05, precision=0.9)
    result = ergotune.tune(str(file), **settings)
    assert result.best == {"A": 3}
    assert result.best_measurement["quantities"]["rate"]["value"] == 30
    time = result.best_measurement["quantities"]["time"]
    assert time["value"] > 0
    assert time["half_width"] > 1.97 * time["standard_error"], "Student's t of few runs, as the command prints it"
    assert result.evaluated == 3
    again = ergotune.tune(ergotune.load_problem(str(file)), **settings)
    assert again.evaluated == 0
    assert again.best == {"A": 3}


def test_an_objective_that_nobody_says_is_refused(tmp_path):
    file = tmp_path / "echo.toml"
    file.write_text(PROBLEM)
    try:
        ergotune.tune(str(file), objective="max speed")
    except ergotune.UserError as error:
        assert "speed" in str(error)
    else:
        raise AssertionError("no error")
