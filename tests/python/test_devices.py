"""Several boards and nodes from Python: the same session as the command's."""

import pytest

import ergotune

PROBLEM = """
name = "boards"
[parameters]
x = "range(1, 31)"
[kernel]
function = "f"
arguments = []
[kernel.source.c]
text = "void f(void) {}"
"""


@pytest.fixture
def problem(tmp_path):
    file = tmp_path / "p.toml"
    file.write_text(PROBLEM)
    return file


def test_devices_share_a_session(problem):
    result = ergotune.tune(problem, devices=["sim:a100", "sim:a100"], strategy="brute_force", early_stop=False)
    assert result.evaluated == 30
    assert len(result.devices) == 2
    assert sum(board["measured"] for board in result.devices) >= 30
    factors = [board["factors"]["time"]["value"] for board in result.devices]
    assert factors[0] * factors[1] == pytest.approx(1)
    with pytest.raises(TypeError, match="give one of them"):
        ergotune.tune(problem, device="sim:a100", devices=["sim:a100", "sim:a100"])


def test_workers_are_nodes(problem):
    result = ergotune.tune(problem, devices=["sim:a100"], node_commands=["{} --node a", "{} --node b"], strategy="brute_force",
                           early_stop=False)
    assert result.evaluated == 30
    assert sorted(board["id"].split("/")[0] for board in result.devices) in (["a"], ["b"], ["a", "b"])
    with pytest.raises(KeyboardInterrupt):  # while it waits for its first node
        ergotune.tune(problem, device="sim:a100", node_commands=["kill -INT $PPID; exec sleep 20"])
    with pytest.raises(ergotune.UserError, match="cannot log in"):
        ergotune.tune(problem, device="sim:a100", node_commands=["echo cannot log in >&2; exit 255"], node_silence=1)
