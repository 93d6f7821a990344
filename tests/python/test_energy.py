"""Energy of regions of code, with a program that prints watts as the sensor."""
import csv
import io
import json
import os
import threading
import time

import pytest

import ergotune

WATTS = 50.0
SENSOR = "command:sh -c 'while :; do echo 50; sleep 0.01; done'"


@pytest.fixture(scope="module")
def monitor():
    return ergotune.EnergyMonitor(SENSOR)


def holds(energy, watts=WATTS):
    """What a steady power needs in the region's time."""
    assert energy.joules is not None, str(energy)
    return abs(energy.joules - watts * energy.seconds) <= energy.half_width + 1e-6


def test_a_region_has_its_energy(monitor):
    with ergotune.energy(monitor=monitor, name="sleep") as region:
        time.sleep(0.4)
    assert region.seconds >= 0.4
    assert holds(region.result)
    assert region.watts == pytest.approx(WATTS, rel=0.1)
    assert [one["sensor"] for one in region.sensors] == monitor.sensors


def test_nested_and_overlapping_regions_are_totals_by_name(monitor):
    def overlapping():
        with monitor.region("thread"):
            time.sleep(0.3)
    thread = threading.Thread(target=overlapping)
    with monitor.region("outer"):
        thread.start()
        for _ in range(2):
            with monitor.region("inner"):
                time.sleep(0.25)
        thread.join()
    totals = {total.name: total for total in monitor.totals()}
    assert totals["inner"].regions == 2 and totals["outer"].regions == 1
    assert all(holds(totals[name]) for name in ("outer", "inner", "thread"))
    assert totals["outer"].joules > totals["inner"].joules
    assert totals["inner"].per(2).joules == pytest.approx(totals["inner"].joules / 2)


def test_an_exception_ends_the_region_and_goes_on(monitor):
    with pytest.raises(KeyError):
        with ergotune.energy(monitor=monitor, name="raises") as region:
            time.sleep(0.2)
            raise KeyError
    assert holds(region.result)


def test_a_decorated_function_adds_up_its_calls(monitor):
    @ergotune.energy(monitor=monitor)
    def step(seconds):
        """Waits."""
        time.sleep(seconds)
        return seconds
    assert step.energy() is None
    assert [step(0.2), step(0.3)] == [0.2, 0.3]
    assert step.__doc__ == "Waits."
    assert step.energy().regions == 2
    assert holds(step.energy())


def test_idle_power_is_taken_off():
    measured = ergotune.EnergyMonitor(SENSOR, idle=0.5)
    with measured.region() as region:
        time.sleep(0.4)
    assert abs(region.energy.above_idle) <= region.energy.above_idle_half_width + 1e-6
    given = ergotune.EnergyMonitor(SENSOR, idle=[20.0])
    with given.region() as region:
        time.sleep(0.4)
    assert region.energy.above_idle == pytest.approx(region.energy.joules - 20 * region.energy.seconds)


def test_totals_are_written_as_csv_json_and_prometheus(monitor):
    with monitor.region('a "quoted" name'):
        time.sleep(0.2)
    rows = list(csv.DictReader(io.StringIO(monitor.csv())))
    lines = [json.loads(line) for line in monitor.json_lines().splitlines()]
    assert [row["name"] for row in rows] == [line["name"] for line in lines]
    last = lines[-1]
    assert last["name"] == 'a "quoted" name'
    assert float(rows[-1]["joules"]) == pytest.approx(last["joules"])
    assert r'region="a \"quoted\" name"' in monitor.prometheus()


def test_callbacks_serve_trainers_of_both_kinds(monitor):
    reported = []
    callback = ergotune.EnergyCallback(monitor, report=reported.append)
    callback.on_fit_start("trainer", "module")  # Lightning asks for every event
    callback.on_train_start("trainer", "module")
    for _ in range(2):
        callback.on_train_epoch_start("trainer", "module")
        time.sleep(0.2)
        callback.on_train_epoch_end("trainer", "module")
    callback.on_train_end("trainer", "module")
    epochs = next(total for total in reported if total.name == "epoch")
    assert epochs.regions == 2 and holds(epochs)
    callback.on_train_begin("arguments", "state", "control", model=None)  # Hugging Face's names
    callback.on_epoch_begin("arguments", "state", "control")
    time.sleep(0.2)
    callback.on_epoch_end("arguments", "state", "control")
    assert callback.on_step_end("arguments", "state", "control") is None
    callback.on_train_end("arguments", "state", "control")
    assert next(total for total in reversed(reported) if total.name == "training").regions == 2


def test_work_is_synchronised_at_both_ends():
    calls = []
    monitor = ergotune.EnergyMonitor(SENSOR, synchronize=lambda: calls.append(1))
    with monitor.region():
        assert len(calls) == 1
    assert len(calls) == 2


def test_mistakes_are_named():
    with pytest.raises(ergotune.UserError, match="nothere"):
        ergotune.EnergyMonitor("nothere:0")
    with pytest.raises(ergotune.UserError):
        ergotune.EnergyMonitor(SENSOR, SENSOR)
    with pytest.raises(TypeError):
        ergotune.EnergyMonitor(idle=[1.0], synchronize=3)
    with pytest.raises(ergotune.UserError):
        ergotune.EnergyMonitor(SENSOR, idle=[1.0, 2.0])


def test_a_forked_child_measures_for_itself(monitor):
    with ergotune.energy(SENSOR):
        time.sleep(0.1)
    child = os.fork()
    if child == 0:
        with ergotune.energy(SENSOR) as region:
            time.sleep(0.3)
        holding = region.joules is not None and holds(region.result)
        try:
            monitor.region("the parent's").__enter__()
        except ergotune.UserError:
            os._exit(0 if holding else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_child_ends_with_the_parents_monitor():
    mine = ergotune.EnergyMonitor(SENSOR)
    region = mine.region().__enter__()
    child = os.fork()
    if child == 0:
        region.__exit__(None, None, None)
        del region, mine
        os._exit(0)
    deadline = time.monotonic() + 30
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        assert time.monotonic() < deadline, "the child waits for a thread that it does not have"
        time.sleep(0.01)
    region.__exit__(None, None, None)
    assert region.energy.seconds > 0
