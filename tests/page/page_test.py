"""The page, live and saved, in a real browser: page_test.py --ergotune COMMAND [--screenshots FOLDER].

Where no Chromium is installed the tests that need one are skipped, and counted."""

import argparse
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.parse

import devtools

ROOT = pathlib.Path(__file__).resolve().parents[2]
VECTOR_ADD = ROOT / "examples/vector_add/vector_add.toml"
options = None
MARKUP = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=2>"


def ergotune(*words, **more):
    result = subprocess.run([options.ergotune, *map(str, words)], capture_output=True, text=True, timeout=200, **more)
    if result.returncode not in (0, 1):
        raise AssertionError(f"{words}: {result.returncode} {result.stderr}")
    return result


def as_json(*words):
    return json.loads(ergotune(*words, "--json").stdout)


class Watch:
    """`ergotune watch`, ended with the test."""

    def __init__(self, place, *more):
        self.process = subprocess.Popen([options.ergotune, "watch", str(place), "--port", "0", "--json", *more], stdout=subprocess.PIPE, text=True)
        self.url = json.loads(self.process.stdout.readline())["url"]
        parts = urllib.parse.urlsplit(self.url)
        self.port, self.token = parts.port, urllib.parse.parse_qs(parts.query)["token"][0]

    def get(self, target, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, target, headers={"X-Ergotune-Token": self.token, **headers})
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer.status, body

    def json(self, target):
        status, body = self.get(target)
        if status != 200:
            raise AssertionError(f"{target}: {status} {body}")
        return json.loads(body)

    def events(self, session="1", after=0):
        """A connection to the stream of events; nothing is read yet."""
        reader = socket.create_connection(("127.0.0.1", self.port), timeout=60)
        reader.sendall(f"GET /events?session={session}&after={after}&token={self.token} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n\r\n".encode())
        return reader

    def read_until(self, reader, words):
        """All that comes until these words; where the server let go of a slow reader, it goes on after its last row, as browsers do."""
        got = b""
        while words not in got:
            more = reader.recv(1 << 20)
            got += more
            if not more:
                reader.close()
                ids = re.findall(rb"^id: (\d+)$", got, re.M)
                reader = self.events(after=int(ids[-1]) if ids else 0)
        reader.close()
        return got

    def close(self):
        self.process.terminate()
        self.process.wait(60)  # it ends itself 30 s after a signal at the latest
        self.process.stdout.close()


def cache(file, count, name="k", device="Some GPU", bad=""):
    """A Kernel Tuner cache with this many configurations; every hundredth failed."""
    side = round(count ** 0.5)
    entries = {}
    for a in range(side):
        for b in range(side):
            time_ms = 1 + 1e-3 * ((a * 37 + b * 101) % 997) + 1e-7 * b
            value = time_ms if (a * side + b) % 100 else "RuntimeFailedConfig"
            entries[f"{a},{b}"] = {"a": a, "b": b, "time": value, "times": [value] * 3 if value == time_ms else [], "error": bad,
                                   "compile_time": 1, "verification_time": 0, "benchmark_time": 1}
            if value == time_ms:
                entries[f"{a},{b}"]["nvml_energy"] = 0.1 + 1e-4 * ((a * 53 + b * 17) % 991)
    pathlib.Path(file).write_text(json.dumps({
        "device_name": device, "kernel_name": name, "problem_size": 1, "tune_params_keys": ["a", "b"],
        "tune_params": {"a": list(range(side)), "b": list(range(side))}, "objective": "time", "cache": entries}))


class Case(unittest.TestCase):
    browser = None

    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory(prefix="ergotune-page-")
        cls.folder = pathlib.Path(cls.place.name)

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def watch(self, place, *more):
        watch = Watch(place, *more)
        self.addCleanup(watch.close)
        return watch

    def imported(self, count, file="one.db", **more):
        file = self.folder / file
        if not file.exists():
            recorded = file.with_suffix(".json")
            cache(recorded, count, **more)
            ergotune("import", recorded, "--store", file)
        return file


class Server(Case):
    """What needs no browser."""

    def test_a_wrong_token_host_or_origin_gets_nothing(self):
        watch = self.watch(self.imported(100))
        local = f"127.0.0.1:{watch.port}"
        for target in ("/", "/api/sessions", "/api/session/1", "/events?session=1", "/nothing"):
            for token in ("", "0" * 32, watch.token[:-1], watch.token + "0"):
                status, body = watch.get(target, **{"X-Ergotune-Token": token})
                self.assertEqual(status, 403, (target, token))
                self.assertNotIn("Some GPU", body)
            for host in ("evil.example", f"evil.example:{watch.port}", "127.0.0.1.evil.example", "localhost.evil", ""):
                self.assertEqual(watch.get(target, Host=host)[0], 421, (target, host))
        self.assertEqual(watch.get("/api/sessions", Host="localhost:8080")[0], 200, "ssh -L with another port at its near end")
        for origin in ("", "http://evil.example", "null", f"http://127.0.0.1:{watch.port + 1}"):
            self.assertEqual(watch.get("/api/session/1/stop", "POST", Origin=origin)[0], 403, origin)
        status, _ = watch.get("/api/session/1/stop", "POST", Origin=f"http://{local}")
        self.assertEqual(status, 409, "allowed, and no process works on it")
        self.assertEqual(watch.get("/api/session/1/stop")[0], 404, "GET changes nothing")

    def test_the_page_may_run_its_own_scripts_alone(self):
        watch = self.watch(self.imported(100))
        connection = http.client.HTTPConnection("127.0.0.1", watch.port, timeout=60)
        connection.request("GET", f"/?token={watch.token}")
        answer = connection.getresponse()
        policy = answer.getheader("Content-Security-Policy")
        self.assertIn("default-src 'none'", policy)
        self.assertNotIn("unsafe", policy)
        cookie = answer.getheader("Set-Cookie")
        self.assertTrue("HttpOnly" in cookie and "SameSite=Strict" in cookie, cookie)
        page = answer.read().decode()
        connection.close()
        for outside in ("<script src", "<link rel=\"stylesheet", "@import", "https://"):
            self.assertNotIn(outside, page)

    def test_shows_what_show_tells(self):
        file = self.imported(100)
        watch = self.watch(file)
        shown, head = as_json("show", file), watch.json("/api/session/1")["document"]
        self.assertEqual(head["best"]["objective"], shown["best"]["objective"])
        self.assertEqual(head["statuses"], shown["statuses"])
        page = as_json("show", file, "--page")["page"]
        for name in ("best", "default", "median", "gains", "top", "convergence", "failures", "statuses", "rows"):
            self.assertEqual(head[name], page["document"][name], name)
        self.assertEqual(watch.json("/api/session/1/findings"), page["findings"])
        rows = watch.json("/api/session/1/results")
        self.assertEqual(rows["results"]["columns"], page["results"]["columns"])
        self.assertEqual((rows["total"], rows["more"]), (100, False))
        one = watch.json("/api/session/1/configuration/7")
        self.assertEqual(one["configuration"], {"a": 0, "b": 7})
        self.assertAlmostEqual(one["quantities"]["time"]["value"], rows["results"]["columns"]["time"][7], 9)

    def test_rows_come_in_pages_and_each_once(self):
        watch = self.watch(self.imported(100))
        seen, after = [], 0
        while True:
            page = watch.json(f"/api/session/1/results?after={after}&limit=33")
            if not page["results"]["rows"]:
                break
            seen += page["results"]["rows"]
            after = page["last"]
        self.assertEqual(seen, list(range(100)))

    def test_fifty_readers_are_told_everything(self):
        watch = self.watch(self.imported(10_000, "many.db"))
        readers = [watch.events() for _ in range(50)]
        for reader in readers:
            self.assertIn(b"id: 5000\n", watch.read_until(reader, b"id: 10000\n"))

    def test_a_reader_that_stops_reading_holds_nobody_up_and_misses_nothing(self):
        watch = self.watch(self.imported(10_000, "many.db"))
        watch.json("/api/session/1")
        lazy = []
        for _ in range(20):
            reader = watch.events()
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            lazy.append(reader)
        begun = time.monotonic()
        quick = watch.events()
        watch.read_until(quick, b"id: 10000\n")
        memory = int(next(line for line in pathlib.Path(f"/proc/{watch.process.pid}/status").read_text().splitlines() if line.startswith("VmRSS")).split()[1])
        self.assertLess(memory, 400_000, "kB: what a reader is behind is bounded")
        self.assertEqual(watch.get("/api/sessions")[0], 200)
        self.assertLess(time.monotonic() - begun, 100)
        self.assertIn(b"id: 5000\n", watch.read_until(lazy[0], b"id: 10000\n"))
        for reader in [quick, *lazy]:
            reader.close()

    def test_the_board_is_seen_while_its_energy_is_measured(self):
        board = pathlib.Path(options.ergotune).resolve().parent / "tests/fakes/nvml/libnvidia-ml.so.1"
        if not board.exists():
            self.skipTest("the fake board is not built")
        environment = {**os.environ, "ERGOTUNE_DEVICE_LOCK": "off", "ERGOTUNE_NVML": str(board), "ERGOTUNE_FAKE_NVML_STATE": str(self.folder / "board"),
                       "ERGOTUNE_STATE_DIR": str(self.folder / "state"), "ERGOTUNE_HELPER_SOCKET": str(self.folder / "nobody")}
        tune = subprocess.Popen([options.ergotune, "tune", ROOT / "examples/vector_add/vector_add_c.toml", "--device", "host", "--objective", "energy",
                                 "--sensor", "nvml:0/energy", "--budget", "4", "--no-confirm", "--store", self.folder / "energy.db", "--watch", "-q"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=environment)
        url = next(line for line in tune.stderr if line.startswith("Watch it at")).split()[-1]
        parts = urllib.parse.urlsplit(url)
        with socket.create_connection(("127.0.0.1", parts.port), timeout=100) as reader:
            reader.sendall(f"GET /events?session=1&after=0&{parts.query} HTTP/1.1\r\nHost: 127.0.0.1:{parts.port}\r\n\r\n".encode())
            got = b""
            while b"event: end" not in got and (more := reader.recv(1 << 20)):
                got += more
        tune.communicate(timeout=100)
        samples = [json.loads(line[6:]) for line in got.decode(errors="replace").split("\n") if line.startswith('data: {"next"')]
        windows = [w for s in samples for w in s["window"]]
        powers = [p for s in samples for p, w in zip(s["power_w"], s["window"]) if w == 1 and p is not None]
        self.assertIn(1, windows, "the window whose energy counts")
        self.assertIn(2, windows, "and its end")
        self.assertTrue(powers and min(powers) > 0, powers)
        self.assertTrue(any(c for s in samples for c in s["core_mhz"]), "clocks")

    def test_two_pages_in_one_browser_have_a_cookie_each(self):
        jar = []
        for watch in (self.watch(self.imported(100)), self.watch(self.imported(100))):
            connection = http.client.HTTPConnection("127.0.0.1", watch.port, timeout=60)
            connection.request("GET", f"/?token={watch.token}")
            jar.append((watch, connection.getresponse().getheader("Set-Cookie").split(";")[0]))
            connection.close()
        self.assertNotEqual(jar[0][1].split("=")[0], jar[1][1].split("=")[0], "a browser would keep the last alone")
        for watch, _ in jar:
            self.assertEqual(watch.get("/api/sessions", **{"X-Ergotune-Token": "", "Cookie": "; ".join(c for _, c in jar)})[0], 200)

    def test_a_session_that_cannot_be_read_stops_no_other(self):
        folder = self.folder / "several"
        folder.mkdir()
        for name in ("a", "b"):
            shutil.copy(self.imported(100), folder / f"{name}.db")
        watch = self.watch(folder)
        good, bad = watch.events("a.db:1"), watch.events("b.db:1")
        watch.read_until(bad, b"event: state")
        bad = watch.events("b.db:1")
        self.addCleanup(bad.close)
        for name, change in (("b", "DROP TABLE runs"), ("a", "INSERT INTO measurements SELECT 101, session, '[77, 88]', status, message, quantities, metrics, metric_errors, warnings, times, compile_seconds, "
                              "verify_seconds, measure_seconds, tuner_seconds, finished_at, kind, run, stage, board FROM measurements WHERE id = 100")):
            with contextlib.closing(sqlite3.connect(folder / f"{name}.db")) as store, store:
                store.execute(change)
        watch.read_until(good, b"id: 101\n")
        self.assertEqual(json.loads(watch.get("/api/sessions")[1])["first"], "a.db:1")
        fresh = self.watch(folder)
        self.assertEqual(fresh.get("/events?session=b.db%3A1")[0], 500, "and the server lives")
        fresh.read_until(fresh.events("a.db:1"), b"id: 101\n")

    def test_whatever_is_asked_it_goes_on(self):
        watch = self.watch(self.imported(100))
        for bytes_sent in (b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100, b"GET " + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n", b"POST /api/session/1/stop HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
                           b"GET /api/session/%00%ff HTTP/1.1\r\nHost: localhost\r\n\r\n", b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", watch.port), timeout=10) as one:
                one.sendall(bytes_sent)
        for target in ("/api/session/99", "/api/session/-1", "/api/session/1/configuration/100000", "/api/session/1/results?after=x&limit=-3",
                       "/api/compare", "/api/compare?session=1", "/api/session/1?objective=nonsense(", "/../../etc/passwd", "/api/session/..%2f..%2fetc"):
            status, body = watch.get(target)
            self.assertIn(status, (200, 400, 404), (target, body))
            self.assertNotIn("root:", body)
        self.assertEqual(watch.get("/api/sessions")[0], 200)


@unittest.skipUnless(devtools.find(), "no Chromium here (package chromium-headless-shell)")
class Pages(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.browser = devtools.Browser()

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        super().tearDownClass()

    def open(self, url, **more):
        page = self.browser.page(url, **more)
        self.addCleanup(page.close)
        return page

    def loaded(self, url, rows, **more):
        page = self.open(url, **more)
        page.wait(f"window.ergotune && ergotune.rows.n === {rows} && ergotune.model.loading === null && ergotune.model.head && ergotune.model.head.rows === {rows}")
        return page

    def quiet(self, page, server_ended=False):
        """No errors; of a server that has ended a slow page may still have asked something, or be cut off."""
        ends = ("ERR_CONNECTION_REFUSED", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET")
        self.assertEqual([e for e in page.errors() if not (server_ended and any(end in e for end in ends))], [])

    def shot(self, page, name, whole=False):
        if options.screenshots:
            page.screenshot(pathlib.Path(options.screenshots) / f"{name}.png", whole)

    def test_a_live_session_is_watched_to_its_end(self):
        file = self.folder / "live.db"
        environment = {**os.environ, "ERGOTUNE_DEVICE_LOCK": "off"}
        tune = subprocess.Popen([options.ergotune, "tune", VECTOR_ADD, "--device", "opencl", "--store", file, "--watch", "--strategy", "random"],
                                stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        for line in tune.stderr:
            if line.startswith("Watch it at"):
                url = line.split()[-1]
                break
        page = self.open(url)
        page.wait("window.ergotune && ergotune.model.live && ergotune.model.live.state === 'running' && ergotune.rows.n >= 3")
        press = "[...document.querySelectorAll('.controls button')].find(b => b.textContent === '{}').click()"
        page.wait("document.querySelector('.cards .card .big').textContent === 'running'")
        page.value(press.format("Pause"))
        page.wait("ergotune.model.live.state === 'paused'")
        before = page.value("ergotune.model.live.evaluated")
        time.sleep(0.7)
        self.assertEqual(page.value("ergotune.model.live.evaluated"), before, "nothing is begun in a pause")
        self.shot(page, "run-paused")
        page.value(press.format("Resume"))
        page.wait(f"ergotune.model.live.evaluated > {before} && ergotune.model.live.slots.length === 1")
        self.shot(page, "run-live")
        page.value(press.format("Confirm now"))
        page.wait("ergotune.model.run.phase === 'confirming'")
        page.wait("ergotune.model.run.ended_at > 0 && ergotune.model.over", 200)
        tune.communicate(timeout=60)
        self.assertEqual(tune.returncode, 0)
        shown = as_json("show", file)
        self.assertIn("web page", page.value("ergotune.model.run.ended"))
        self.assertEqual(page.value("ergotune.rows.n"), shown["rows"])
        self.assertLess(shown["rows"], 54, "the search was ended early")
        self.assertGreater(shown["best"]["confirmation_repeats"], 0)
        self.assertEqual(page.value("ergotune.rows.confirmed.reduce((a, b) => a + b, 0)") > 0, True)
        self.assertFalse(list(self.folder.glob("live.db-live-*")), "what it showed itself in is gone")
        self.quiet(page, server_ended=True)

    def test_stop_ends_the_session_after_the_current_one(self):
        file = self.folder / "stopped.db"
        tune = subprocess.Popen([options.ergotune, "tune", VECTOR_ADD, "--device", "opencl", "--store", file, "--strategy", "random", "-q", "--json"],
                                stdout=subprocess.PIPE, text=True, env={**os.environ, "ERGOTUNE_DEVICE_LOCK": "off"})
        watch = self.watch(file, "--wait")
        while True:
            sessions = watch.json("/api/sessions")["sessions"]
            if sessions and sessions[0].get("rows", 0) >= 2:  # none while the store is being made
                break
            time.sleep(0.05)
        self.assertEqual(watch.get("/api/session/1/stop", "POST", Origin=f"http://127.0.0.1:{watch.port}")[0], 200)
        result = json.loads(tune.communicate(timeout=100)[0])
        self.assertIn("web page", result["stopped_because"])
        self.assertLess(result["evaluated"], 54)
        again = as_json("tune", VECTOR_ADD, "--device", "opencl", "--store", file, "-q", "--budget", result["evaluated"], "--no-confirm")
        self.assertEqual(again["resumed"], result["evaluated"], "nothing that came is lost, and nothing that was stopped is blamed")

    def test_after_the_network_was_cut_it_has_every_row(self):
        file = self.folder / "cut.db"
        tune = ["tune", VECTOR_ADD, "--device", "sim:a100", "--store", file, "-q"]
        ergotune(*tune, "--budget", 10)
        watch = self.watch(file)
        page = self.loaded(watch.url, 10)
        page.value("document.title")
        page.offline(True)
        ergotune(*tune, "--budget", 30, "--strategy", "random")
        time.sleep(0.5)
        page.offline(False)
        rows = as_json("show", file)["rows"]
        self.assertGreater(rows, 10)
        page.wait(f"ergotune.rows.n === {rows} && !ergotune.model.lost && ergotune.model.head.rows === {rows}")
        self.assertEqual(page.value("JSON.stringify(ergotune.rows.ids)"), json.dumps(list(range(rows)), separators=(",", ":")), "each once")
        # what a browser says of a connection that is cut is no fault of the page
        self.assertEqual([e for e in page.errors() if "net::ERR" not in e], [])

    def test_two_sessions_are_compared_as_the_command_does(self):
        file = self.folder / "two.db"
        for device in ("sim:a100", "sim:h100"):
            ergotune("tune", VECTOR_ADD, "--device", device, "--store", file, "-q", "--objective", "energy")
        (self.folder / "bad.db").write_bytes(b"SQLite format 3\0" + b"x" * 4096)
        watch = self.watch(self.folder)
        page = self.open(watch.url)
        page.wait("window.ergotune && ergotune.model.sessions.length >= 2")
        listed = page.value("[...document.querySelectorAll('#session option')].filter(o => o.disabled).map(o => o.textContent).join()")
        self.assertIn("cannot be read", listed)
        self.assertIn("bad.db", listed)
        page.value("ergotune.openSession('two.db:2')")
        page.wait("ergotune.model.head && ergotune.model.head.device_name.includes('H100')")
        page.value("ergotune.openView('compare')")
        page.value("['two.db:1', 'two.db:2'].forEach(id => { const box = [...document.querySelectorAll('input')].find(b => b.ariaLabel === id); if (!box.checked) box.click(); })")
        page.wait("document.body.innerText.includes('rank correlation')")
        told = as_json("compare", f"{file}:1", f"{file}:2")
        pair = told["pairs"][0]
        self.assertEqual(pair["common"], told["sessions"][0]["usable"])
        self.assertIn(f"{pair['rank_correlation']:.3f}", page.value("document.getElementById('main').innerText"))
        self.assertIn(told["configurations"][0]["configuration"], page.value("document.getElementById('main').innerText"))
        self.shot(page, "compare")
        self.quiet(page)

    def test_ten_thousand_configurations(self):
        page = self.loaded(self.watch(self.imported(10_000, "many.db")).url, 10_000)
        page.value("ergotune.openView('explore')")
        self.assertIn("9900 of 10000 configurations are shown", page.value("document.getElementById('main').innerText"))
        self.shot(page, "explore")
        page.value("ergotune.figures.forEach(f => { f.drawn = -1; })")
        page.value("(s => { s.value = 'energy'; s.dispatchEvent(new Event('change')); })([...document.querySelectorAll('select')].find(s => s.parentNode.textContent.startsWith('colour')))")
        self.assertEqual(page.value("ergotune.drawn().filter(took => took >= 0).length"), 1, "another colour is one figure's matter")
        page.value("[...document.querySelectorAll('select')].find(s => [...s.options].some(o => o.value === 'a' && !s.closest('.figure'))).value = 'a'")
        page.value("(s => { s.value = 'a'; s.dispatchEvent(new Event('change')); })([...document.querySelectorAll('select')][1])")
        page.value("[...document.querySelectorAll('.chips button')][3].click()")
        self.assertIn("99 of 10000 configurations are shown", page.value("document.getElementById('main').innerText"))
        page.value("ergotune.openView('table')")
        self.assertLess(page.value("document.querySelectorAll('.virtual tr').length"), 100, "only what is in sight")
        self.assertIn("99 of 10000", page.value("document.getElementById('main').innerText"), "what is kept is kept in every view")
        csv = page.value("ergotune.views.find(v => v.name === 'table').csv()")
        self.assertEqual(len(csv.strip().split("\n")), 100)
        page.value("document.querySelector('.virtual').dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowDown'}))")
        page.value("document.querySelector('.virtual').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}))")
        page.wait("document.getElementById('detail').open && document.getElementById('detail').innerText.includes('energy')")
        self.assertIn("<svg", page.value("(ergotune.openView('explore'), ergotune.figures[0].svg())"))
        few = "Array.from({length: 500}, (_, i) => i * %d %% 97 === 5 ? NaN : i * %d %% 23)"
        page.value(f"window.xs = {few % (31, 7)}, window.ys = {few % (11, 13)}")
        table = "ergotune.views.find(v => v.name === 'table')"
        for flip, by in ((0, "v[a] - v[b]"), (1, "v[b] - v[a]")):
            page.value(f"Object.assign({table}, {{sort: ['\\u0000objective', {flip}], all: true}})")
            self.assertTrue(page.value(f"(v => {{ const all = [...v.keys()]; return {table}.sorted().join() === [...all.filter(i => v[i] === v[i]).sort((a, b) => {by} || a - b), ...all.filter(i => v[i] !== v[i])].join(); }})"
                                       "(ergotune.rows.values('\\u0000objective').slice(0, ergotune.rows.n))"), f"flip {flip}, what failed last")
        page.value(f"{table}.all = false")
        for x, y in ((-1, -1), (-1, 1), (1, 1)):
            good, beats = "xs[i] === xs[i] && ys[i] === ys[i]", f"{x} * (xs[j] - xs[i]) >= 0 && {y} * (ys[j] - ys[i]) >= 0 && (xs[j] !== xs[i] || ys[j] !== ys[i] || j < i)"
            self.assertEqual(page.value(f"ergotune.frontOf(xs, ys, i => {good}, 500, {x}, {y}).sort((a, b) => a - b).join()"),
                             page.value(f"[...xs.keys()].filter(i => {good} && ![...xs.keys()].some(j => {beats})).join()"))
        self.assertIn("a,b,time,energy,status", page.value("ergotune.figures[0].csv()").split("\n")[0])
        self.quiet(page)

    def test_a_hundred_thousand_configurations(self):
        page = self.loaded(self.watch(self.imported(99_856, "very-many.db")).url, 99_856)
        page.value("ergotune.openView('explore')")
        drawn = page.value("ergotune.drawn()")
        self.assertEqual(len(drawn), 5, "scatter, parallel coordinates, map, and one for each parameter")
        page.value("ergotune.openView('table')")
        self.assertLess(page.value("document.querySelectorAll('.virtual tr').length"), 100)
        self.quiet(page)

    def test_markup_in_names_and_messages_is_text(self):
        file = self.imported(100, "markup.db", name=MARKUP, device=MARKUP, bad=MARKUP)
        saved = self.folder / "markup.html"
        ergotune("report", file, "-o", saved)
        for url in (self.watch(file).url, saved.as_uri()):
            page = self.loaded(url, 100)
            for view in page.value("ergotune.views.map(v => v.name)"):
                page.value(f"ergotune.openView('{view}')")
                page.value("new Promise(done => setTimeout(done, 100))")
            self.assertIn(MARKUP, page.value("document.getElementById('title').textContent"))
            self.assertIsNone(page.value("window.pwned"))
            self.quiet(page)

    def test_the_saved_page_is_the_same_page(self):
        file = self.imported(10_000, "many.db")
        saved = self.folder / "saved.html"
        ergotune("report", file, "-o", saved)
        live, page = self.loaded(self.watch(file).url, 10_000), self.loaded(saved.as_uri(), 10_000)
        self.assertEqual(page.value("document.querySelector('.cards').innerText"), live.value("document.querySelectorAll('.cards')[1].innerText"))
        for view in ("explore", "findings", "table"):
            page.value(f"ergotune.openView('{view}')")
        self.assertEqual(page.value("ergotune.views.map(v => v.name).join()"), "run,explore,findings,table")
        self.assertFalse([e for e in self.browser.events if e.get("sessionId") == page.session and e["method"] == "Network.requestWillBeSent"
                          and not e["params"]["request"]["url"].startswith(("file:", "data:"))], "nothing is fetched")
        self.quiet(page)

    def test_on_a_phone_and_in_the_dark(self):
        watch = self.watch(self.imported(10_000, "many.db"))
        page = self.loaded(watch.url, 10_000, width=390, height=800)
        for view in page.value("ergotune.views.map(v => v.name)"):
            page.value(f"ergotune.openView('{view}')")
            self.assertLessEqual(page.value("document.documentElement.scrollWidth"), 390, f"{view} is wider than the screen")
        page.value("ergotune.openView('run')")
        self.shot(page, "phone")
        light = page.value("getComputedStyle(document.body).backgroundColor")
        page.dark(True)
        self.assertNotEqual(page.value("getComputedStyle(document.body).backgroundColor"), light)
        wide = self.loaded(watch.url, 10_000)
        wide.dark(True)
        wide.value("ergotune.openView('explore')")
        self.shot(wide, "explore-dark")
        self.quiet(page)


def main():
    global options
    parser = argparse.ArgumentParser()
    parser.add_argument("--ergotune", required=True)
    parser.add_argument("--screenshots")
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)


if __name__ == "__main__":
    main()
