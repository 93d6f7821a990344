"""ergotune.watch(): the page from Python."""

import urllib.error
import urllib.request

import numpy as np
import pytest

import ergotune

SIMULATED = dict(device="sim:a100", confirm=False)


def problem():
    made = ergotune.Problem("<b>copy</b>")
    made.set_source("opencl", "__kernel void copy(__global float *b, __global const float *a) "
                    "{ b[get_global_id(0)] = a[get_global_id(0)]; }", "copy")
    made.add_buffer("b", np.zeros(1024, np.float32), "write")
    made.add_buffer("a", np.ones(1024, np.float32))
    made.set_launch(global_size=[1024], block=["block"])
    made.add_parameter("block", (32, 64, 128, 256))
    return made


def test_a_page_begins_before_there_is_a_store_and_follows_it(tmp_path):
    store = tmp_path / "results.db"
    with ergotune.Watch(store, wait=True) as page:
        assert page.table() == {"state": "no session yet"}
        result = ergotune.tune(problem(), store=store, **SIMULATED)
        told = page.table()
        assert (told["rows"], told["failed"]) == (4, 0)
        assert told["best"] == result.best_measurement["quantities"]["time"]["value"]
        assert page.get("/api/session/1/results")["total"] == 4
        with urllib.request.urlopen(page.url) as answer:
            assert "ergotune" in answer.read().decode()
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(page.url.split("?")[0])
        shown = page._repr_html_()
        assert shown.startswith("<iframe") and page.url in shown
    with pytest.raises(OSError):
        urllib.request.urlopen(page.url)


def test_a_session_that_keeps_nothing_cannot_be_watched(tmp_path):
    with pytest.raises(ergotune.UserError, match="store"):
        ergotune.tune(problem(), watch=True, **SIMULATED)
    with pytest.raises(ValueError, match="store"):
        ergotune.tune(problem(), **SIMULATED).watch()


def test_tune_and_its_result_show_the_page(tmp_path, capsys):
    result = ergotune.tune(problem(), store=tmp_path / "r.db", watch=True, **SIMULATED)
    assert f"Watch it at {result.page.url}" in capsys.readouterr().err
    result.page.close()
    with result.watch() as again:
        assert again.table()["configuration"] == result.best


def test_a_folder_without_stores_is_refused_with_its_reason(tmp_path):
    with pytest.raises(ergotune.UserError, match="no store lies in this folder"):
        ergotune.watch(tmp_path)
