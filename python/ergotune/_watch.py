"""The page on a session, from Python: in a notebook's cell, as a link, or as a table where no page can be shown."""

from __future__ import annotations

import html
import json
import os
import subprocess
import sys
import threading
import urllib.parse
import urllib.request
from typing import Any, Dict, Optional, Union

from . import _command, _core

Row = Dict[str, Any]


class Watch:
    """A server of the page on a store, which lives as long as this object, or this process.

    Attributes:
        url: the page's link. It holds a secret: who has it sees the sessions, and may stop and pause them.
    """

    def __init__(self, store: Union[str, "os.PathLike[str]"] = "ergotune.db", *, session: int = 0, height: int = 760,
                 wait: bool = False) -> None:
        self.height = height
        self.shown_in: Optional[int] = None  # number of the notebook's cell
        words = [_command.existing(), "watch", os.fspath(store), "--json", "--until", str(os.getpid())]
        if wait:
            words.append("--wait")
        if session:
            words += ["--session", str(session)]
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self._process.stdout is not None and self._process.stderr is not None
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            words_of_it = self._process.stderr.read().strip()
            self._close_streams()
            raise _core.UserError(words_of_it.removeprefix("ergotune: ") or "the page's server did not begin")
        self.url: str = json.loads(line)["url"]

    def _close_streams(self) -> None:
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def get(self, target: str) -> Any:
        """What the server answers to a route (docs/formats.md), as Python has it: ``watch.get("/api/sessions")``."""
        parts = urllib.parse.urlsplit(self.url)
        token = urllib.parse.parse_qs(parts.query)["token"][0]
        request = urllib.request.Request(f"http://{parts.netloc}{target}", headers={"X-Ergotune-Token": token})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def table(self) -> Row:
        """How far the session is: a dict with problem, device, state, rows, failed, objective, best (its value, None while nothing
        worked), unit and configuration. None of it while there is no session: ``{"state": "no session yet"}``."""
        first = self.get("/api/sessions")["first"]
        if not first:
            return {"state": "no session yet"}
        answer = self.get("/api/session/" + urllib.parse.quote(first, safe=""))
        document, run = answer["document"], (answer["runs"] or [{}])[-1]
        best = document["best"] or {}
        return {"problem": document["problem"], "device": document["device_name"], "state": run.get("ended") or run.get("phase") or "",
                "rows": document["rows"], "failed": sum(kind["count"] for kind in document["failures"]), "objective": document["objective"]["name"],
                "best": best.get("objective"), "unit": document["objective"]["unit"], "configuration": best.get("configuration")}

    def close(self) -> None:
        """Ends the server."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
        self._close_streams()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_process") and self._process.poll() is None:
            self._process.terminate()

    def __repr__(self) -> str:
        return f"<ergotune.Watch at {self.url}>"

    def _repr_html_(self) -> str:
        link = html.escape(self.url, quote=True)
        return (f'<iframe src="{link}" style="width:100%;height:{self.height}px;border:0"></iframe>'
                f'<p><a href="{link}" target="_blank" rel="noreferrer">in a tab of its own</a></p>')

    def _ipython_display_(self) -> None:
        """Nothing in the cell in which :func:`watch` has shown it, of which it may be the value."""
        if self.shown_in is None or self.shown_in != _cell():
            raise NotImplementedError  # IPython then takes _repr_html_()


def in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    return shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell"


def _cell() -> Optional[int]:
    return int(sys.modules["IPython"].get_ipython().execution_count) if in_notebook() else None


def _table_html(row: Row) -> str:
    return "<table>" + "".join(f"<tr><th>{html.escape(str(k))}</th><td>{html.escape(str(v))}</td></tr>" for k, v in row.items()) + "</table>"


def _live_table(watch: Watch) -> None:
    from IPython.display import HTML, display  # type: ignore[import-untyped,import-not-found,unused-ignore]

    handle = display(HTML(_table_html(watch.table())), display_id=True)  # type: ignore[no-untyped-call,unused-ignore]

    def refresh() -> None:
        last: Optional[Row] = None
        pause = threading.Event()
        while watch._process.poll() is None:
            pause.wait(2)
            try:
                row = watch.table()
            except (OSError, ValueError):
                continue
            if row != last:
                handle.update(HTML(_table_html(row)))  # type: ignore[no-untyped-call,unused-ignore]
                last = row

    threading.Thread(target=refresh, daemon=True).start()


def watch(store: Union[str, "os.PathLike[str]"] = "ergotune.db", *, session: int = 0, page: Optional[bool] = None,
          height: int = 760, wait: bool = False) -> Watch:
    """Shows what a store holds while a session writes it, or after: the page of ``ergotune watch``.

    Args:
        store: a store, or a folder with stores.
        session: the one that is shown first; 0: the one worked on last.
        page: False shows a table that follows the session instead, where the browser cannot reach this machine's own address
            (a notebook on a server). None: the page in a notebook, its link elsewhere.
        height: of the page in a notebook, in pixels.
        wait: the store may be made later; without it a store that is not there is a UserError.

    Returns:
        A :class:`Watch`; the page lives as long as that does.
    """
    shown = Watch(store, session=session, height=height, wait=wait)
    if page is False and "IPython" in sys.modules:
        _live_table(shown)
    elif in_notebook():
        sys.modules["IPython"].display.display(shown)
    else:
        print(f"Watch it at {shown.url}", file=sys.stderr)
    shown.shown_in = _cell()
    return shown
