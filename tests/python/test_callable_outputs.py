"""What the outputs of a Python function are compared with, and what a result says of it."""

import array
import collections
import dataclasses
import datetime
import functools
import itertools
import random
import time

import numpy as np
import pytest

import ergotune

QUICK = dict(device="host", strategy="brute_force", confirm=False, max_seconds=0.01, min_repeats=3, precision=0.5, quiet=True)


def statuses(result, parameter="c"):
    return {c[parameter]: m["status"].replace("not_converged", "ok") for c, m in zip(result.configurations, result.measurements)}


def scale(x, c):
    x *= c


def add_to(x, out, c):
    out[:] = x * (c - 1)


@pytest.mark.parametrize("function, arguments", [(scale, (np.arange(1.0, 9),)), (add_to, (np.arange(1.0, 9), np.zeros(8)))])
def test_a_default_that_changes_nothing_is_right(function, arguments):
    for in_process in (False, True):
        result = ergotune.tune_callable(function, {"c": [1, 2]}, arguments=arguments, in_process=in_process, **QUICK)
        assert statuses(result) == {1: "ok", 2: "wrong_result"} and result.best == {"c": 1}
        assert "nothing" in result.verified and "agree" not in str(result)


def double(x, c):
    if c == 2:
        x *= 2
        return x.sum()
    return (2 * x).sum()


def twice(x):
    return 2 * x.sum()


@pytest.mark.parametrize("verify", [None, twice])
def test_a_configuration_that_alone_changes_an_array_is_noted_and_begins_with_its_contents(verify):
    for in_process in (False, True):
        result = ergotune.tune_callable(double, {"c": [1, 2, 3]}, arguments=(np.arange(1.0, 9),), verify=verify, in_process=in_process, **QUICK)
        noted = {c["c"]: any("another configuration" in w for w in m["warnings"]) for c, m in zip(result.configurations, result.measurements)}
        assert set(statuses(result).values()) == {"ok"} and noted == {1: False, 2: True, 3: False}


def chunked(x, c=2, kind="b", size=7):
    return x[:c].sum() if kind else size


def test_the_default_is_what_the_signature_has_among_the_values():
    def default_of(**settings):
        result = ergotune.tune_callable(chunked, {"c": [1, 2, 3], "kind": ["a", "b"], "size": [1, 2]}, arguments=(np.ones(8),), verify=False,
                                        **settings, **QUICK)
        return result.configurations[result.measurements.index(result.default_measurement)]

    assert default_of() == {"c": 2, "kind": "b", "size": 1}
    assert default_of(default={"c": 3}) == {"c": 3, "kind": "b", "size": 1}


@pytest.mark.parametrize("given, values, expected", [
    (np.float32, [np.float64, np.float32], "float32"), (None, [1, None], "None"), ((2, 3), [(0, 0), (2, 3)], "(2, 3)"),
    (twice, [double, twice], "twice"), (False, [1, 0], 0), (2.0, [1, 2], 2), (16, iter([8, 16]), 16), (4, np.array([2, 4]), 4), (5, [1, 2], 1)])
def test_the_default_of_the_signature_may_be_any_object(given, values, expected):
    def takes(c=given):
        return 1.0

    result = ergotune.tune_callable(takes, {"c": values}, verify=False, in_process=True, **QUICK)
    assert result.document["default"]["configuration"] == {"c": expected}


@dataclasses.dataclass
class Found:
    count: int


@dataclasses.dataclass
class State:
    held: dict
    step: int = 0
    itself: object = None


def state():
    made = State({"u": [np.zeros(4), (np.zeros(4),)]})
    made.itself = [made]
    return {"s": made}


def advance(s, c):
    """One array in what the argument holds is written, another one is replaced."""
    while s.step < 3:
        s.held["u"][0][:] += 1 if c < 3 else 2
        s.step += 1
    s.held["u"][1] = (s.held["u"][1][0] + (2 if c == 2 else 1),)
    s.more = c


@pytest.mark.parametrize("in_process", [False, True])
def test_arrays_in_arguments_are_restored_and_compared(in_process):
    arguments = state()
    for given in ({"setup": state}, {"arguments": arguments}):
        result = ergotune.tune_callable(advance, {"c": [1, 2, 3, 4]}, in_process=in_process, **given, **QUICK)
        assert list(statuses(result).values()) == ["ok", "wrong_result", "wrong_result", "wrong_result"] and "agree" in result.verified
    s = arguments["s"]
    assert s.step == 0 and not hasattr(s, "more") and not s.held["u"][0].any() and not s.held["u"][1][0].any()


class Slots:
    __slots__ = ("left",)

    def __init__(self, left):
        self.left = left

    def take(self):
        left = self.left
        del self.left
        return left


TAKEN = {
    "list": ([1, 2], list.pop), "deque": (collections.deque([1, 2]), collections.deque.pop), "dict": ({1: 2}, dict.popitem),
    "set": ({1}, set.pop), "bytearray": (bytearray(b"ab"), bytearray.pop), "array": (array.array("i", [1, 2]), array.array.pop),
    "attributes": (State({}), lambda value: vars(value).pop("step")), "slots": (Slots(1), Slots.take),
    "random": (random.Random(1), random.Random.random), "RandomState": (np.random.RandomState(1), np.random.RandomState.rand),
    "Generator": (np.random.default_rng(1), np.random.Generator.random),
}


@pytest.mark.parametrize("kind", TAKEN)
def test_each_launch_has_what_arguments_held_at_first(kind):
    value, take = TAKEN[kind]
    taken = []

    def uses(x, c):
        taken.append(take(x[0]))
        return taken[-1]

    result = ergotune.tune_callable(uses, {"c": [1, 2]}, arguments={"x": (value,)}, in_process=True, **QUICK)
    assert statuses(result) == {1: "ok", 2: "ok"} and len(taken) > 8 and {*taken, take(value)} == {taken[0]}


def test_an_argument_that_the_first_launch_uses_up_is_refused_by_name():
    with pytest.raises(ergotune.UserError, match="numbers"):
        ergotune.tune_callable(lambda numbers, c: sum(numbers["all"]), {"c": [1, 2]}, arguments={"numbers": {"all": iter([1, 2])}},
                               in_process=True, **QUICK)


OUTPUTS = {
    "text": lambda c: f"r{c}", "bytes": lambda c: b"r%d" % c, "set": lambda c: {c}, "date": lambda c: datetime.date(2020, 1, c),
    "in a tuple": lambda c: (1.0, "x" * c), "in a dict": lambda c: {"a": 1.0, "b": "x" * c}, "dataclass": Found, "range": range,
    "nothing": lambda c: None if c == 2 else 1.0, "mask": lambda c: np.ma.array([1.0, 0.0], mask=[False, c > 1]),
    "objects": lambda c: np.array(["a" * c, None], dtype=object), "dates": lambda c: np.array([f"2020-01-0{c}"], dtype="M8[D]"),
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_outputs_of_every_type_are_compared(kind):
    def made(c, seed):
        return OUTPUTS[kind](c)

    result = ergotune.tune_callable(made, {"c": [1, 2], "seed": [0, 1]}, in_process=True, **QUICK)
    assert statuses(result) == {1: "ok", 2: "wrong_result"} and "agree" in result.verified and "default" in result.verified
    if kind not in ("nothing", "in a dict"):
        judged = ergotune.tune_callable(made, {"c": [1, 2], "seed": [0]}, verify=lambda: OUTPUTS[kind](2), in_process=True, **QUICK)
        assert statuses(judged) == {1: "wrong_result", 2: "ok"}


@pytest.mark.parametrize("output", [lambda: (i for i in range(3)), object, lambda: None], ids=["generator", "object", "nothing"])
def test_agreement_is_not_claimed_where_nothing_can_be_compared(tmp_path, output):
    def made(c):
        return output()

    store = tmp_path / "results.db"
    for _ in range(2):  # the second time from the store
        result = ergotune.tune_callable(made, {"c": [1, 2]}, in_process=True, store=store, **QUICK)
        assert set(statuses(result).values()) == {"ok"}
        for seen in (result, ergotune.show(store)):
            assert "nothing" in seen.verified and "agree" not in str(seen) and seen.verified in str(seen)


def test_what_cannot_be_compared_beside_what_can_is_noted():
    result = ergotune.tune_callable(lambda c: (1.0, object()), {"c": [1, 2]}, in_process=True, **QUICK)
    assert "agree" in result.verified and any("object" in warning for warning in result.best_measurement["warnings"])


def in_place(x, c):
    x *= 2
    return {"mean": x.mean() if c == 1 else -1.0}


def in_place_reference(x):
    x *= 2


def test_a_returned_value_that_the_reference_does_not_return_is_noted():
    result = ergotune.tune_callable(in_place, {"c": [1, 2]}, arguments=(np.arange(1.0, 9),), verify=in_place_reference, **QUICK)
    assert set(statuses(result).values()) == {"ok"}
    assert all(m["warnings"] for m in result.measurements)


def count_letters(text, c):
    return collections.Counter(text if c < 3 else text + "a")


def letters(text):
    return collections.Counter(text)


def test_a_reference_may_return_a_dict_of_what_the_function_returns():
    result = ergotune.tune_callable(count_letters, {"c": [1, 2, 3]}, arguments={"text": "abracadabra"}, verify=letters, **QUICK)
    assert statuses(result) == {1: "ok", 2: "ok", 3: "wrong_result"}
    with pytest.raises(ergotune.UserError):
        ergotune.tune_callable(count_letters, {"c": [1, 2]}, arguments={"text": "abracadabra"}, verify=lambda text: {}, **QUICK)


def test_a_data_frame_is_an_argument():
    pandas = pytest.importorskip("pandas")

    def summed(frame, c):
        if c == 2:
            frame["new"] = frame["a"] * 0
            frame["a"] *= 2
            return frame["a"].sum() / 2
        return frame["a"].sum()

    frame = pandas.DataFrame({"a": np.arange(1.0, 9), "b": list("abcdefgh")})
    first = frame.copy()
    result = ergotune.tune_callable(summed, {"c": [2, 1]}, arguments={"frame": frame}, in_process=True, **QUICK)
    assert statuses(result) == {1: "ok", 2: "ok"} and frame.equals(first)


DISTANCES = np.where(np.arange(100) < 30, 1 + np.arange(100) / 30, 1e30)


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_values_that_mark_elements_do_not_permit_wrong_ones(kind):
    found = {0: DISTANCES, 1: DISTANCES * (1 + 1e-9), 2: np.where(DISTANCES < 9, DISTANCES * 1.01, 1e30)}
    result = ergotune.tune_callable(lambda c: found[c].astype(kind), {"c": [0, 1, 2]}, in_process=True, **QUICK)
    assert statuses(result) == {0: "ok", 1: "ok", 2: "wrong_result"}


def test_a_column_is_no_row():
    result = ergotune.tune_callable(lambda c: np.ones(4) if c == 1 else np.ones((4, 1)), {"c": [1, 2]}, in_process=True, **QUICK)
    assert statuses(result) == {1: "ok", 2: "wrong_result"}


def test_another_order_is_named():
    result = ergotune.tune_callable(lambda c: np.arange(8)[::c], {"c": [1, -1]}, in_process=True, **QUICK)
    assert [("order" in m["message"], m["status"]) for m in result.measurements] == [(False, "ok"), (True, "wrong_result")]


@pytest.mark.parametrize("in_process", [False, True])
def test_random_results_fail_with_the_remedy(in_process):
    result = ergotune.tune_callable(lambda c: np.random.default_rng().random(4), {"c": [1]}, in_process=in_process, **QUICK)
    assert statuses(result) == {1: "wrong_result"} and "verify=" in result.measurements[0]["message"]


def test_a_stored_result_says_what_verified_it(tmp_path):
    def double(c):
        return 2.0

    result = ergotune.tune_callable(double, {"c": [1, 2]}, in_process=True, store=tmp_path / "r.db", **QUICK)
    shown = ergotune.show(tmp_path / "r.db")
    assert shown.verified == result.verified and result.verified in str(shown)


def generate(c):
    yield c


async def wait(c):
    return c


async def generate_later(c):
    yield c


class Generates:
    def __call__(self, c):
        yield c


@pytest.mark.parametrize("function", [generate, wait, generate_later, functools.partial(generate), Generates(), Generates().__call__])
def test_a_function_that_only_returns_a_generator_or_a_coroutine_is_refused(function):
    with pytest.raises(TypeError, match="generator|coroutine"):
        ergotune.tune_callable(function, {"c": [1, 2]}, **QUICK)
    with pytest.raises(TypeError, match="verify"):
        ergotune.tune_callable(lambda c: 1.0, {"c": [1, 2]}, verify=function, **QUICK)


@pytest.mark.parametrize("seconds", [[0.001], [0.001, 0.03]], ids=["alike", "an interval wider than the value"])
def test_a_default_that_wins_has_no_gain_over_itself(tmp_path, seconds):
    in_turn = itertools.cycle(seconds)

    def sleeps(c):
        time.sleep(next(in_turn) if c == 1 else 0.1)

    store = tmp_path / "results.db"
    result = ergotune.tune_callable(sleeps, {"c": [1, 100]}, verify=False, in_process=True, store=store, **QUICK)
    assert result.best == {"c": 1}
    ergotune.export_results(store, tmp_path / "best.h", format="header")
    for text in (str(result), result._repr_html_(), (tmp_path / "best.h").read_text()):
        assert "default" in text and "1.00x faster than the default" not in text and "1.00 times" not in text


def test_a_result_in_which_nothing_worked_has_no_plot():
    def fails(c):
        raise RuntimeError("not here")

    result = ergotune.tune_callable(fails, {"c": [1, 2]}, verify=False, in_process=True, **QUICK)
    with pytest.raises(ValueError, match="not here"):
        result.plot()


def test_messages_that_differ_in_numbers_are_one_failure():
    def fails(c):
        if c:
            raise RuntimeError(f"{c} blocks are too many" if c < 4 else "not supported")

    result = ergotune.tune_callable(fails, {"c": [0, 1, 2, 3, 4, 5]}, verify=False, in_process=True, **QUICK)
    assert result.document["failures"][0]["count"] == 3 and "too many" in result.commonest_failure() and "too many" in str(result)


def test_a_gain_within_its_interval_is_not_certain():
    result = ergotune.tune_callable(lambda c: time.sleep(c / 100), {"c": [2, 0]}, verify=False, in_process=True, **QUICK)
    for half_width in (0.05, 0.2):
        result.document["gain"] = {"value": 1.1, "half_width": half_width}
        for row in ("best", "default"):
            result.document[row]["half_width"] = 0
        assert ("not certain" in str(result)) == (half_width > 0.1)


@functools.lru_cache(maxsize=None)
def remembered(c):
    time.sleep(0.005)
    return 1.0


class Remembering:
    @functools.lru_cache(maxsize=None)
    def waits(self, c):
        return remembered.__wrapped__(c)


def returns_remembering(c):
    return functools.partial(remembered, c)


@pytest.mark.parametrize("function", [remembered, functools.partial(remembered), Remembering().waits, returns_remembering])
@pytest.mark.parametrize("in_process", [False, True])
def test_a_function_that_remembers_results_is_called_by_each_launch(function, in_process):
    result = ergotune.tune_callable(function, {"c": [1, 2]}, in_process=in_process, name="f", **QUICK)
    assert all(m["quantities"]["time"]["value"] > 0.004 for m in result.measurements) and set(statuses(result).values()) == {"ok"}


def test_what_a_function_calls_keeps_what_it_remembers():
    compiled = []

    @functools.lru_cache(maxsize=None)
    def compile_kernel(c):
        compiled.append(c)
        return lambda: 1.0

    def launches(c):
        return compile_kernel(c)()

    result = ergotune.tune_callable(launches, {"c": [1, 2]}, in_process=True, **QUICK)
    assert set(statuses(result).values()) == {"ok"} and sorted(compiled) == [1, 2]
