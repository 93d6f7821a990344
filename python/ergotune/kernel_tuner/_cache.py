"""Kernel Tuner's cache files: read, checked, and appended to while tuning goes on.

One JSON object; while it is open its last two brackets are missing and its last row ends with a comma, so that a tuning
run that was killed loses nothing. Kernel Tuner and its dashboard read what is written here, and the other way round.
"""

import json
import os
from pathlib import Path

import numpy as np

from ._rows import BY_NAME, ErrorConfig, NpEncoder, plain


def cache_path(cache):
    """The file's path, with ``.json`` appended where it is missing."""
    name = str(cache)
    return Path(name if name.endswith(".json") else name + ".json")


def key_of(values):
    """A row's key: its values with commas."""
    return ",".join(str(v) for v in values)


def read_text(path):
    """The file as one JSON object's text, closed where it was left open."""
    return _read(path)[0]


def _read(path):
    """(text, its content)."""
    text = Path(path).read_text().strip()
    try:
        return text, json.loads(text)
    except ValueError:
        pass
    while text:  # a row that was being written when its process died is no row
        candidate = text[:-1] if text.endswith(",") else text
        for brackets in ("}\n}", "}"):
            try:
                return candidate + brackets, json.loads(candidate + brackets)
            except ValueError:
                continue
        text = text[: max(text.rfind("\n"), 0)].rstrip()
    raise ValueError(f"{path} is not a Kernel Tuner cache")


def read_cache(cachefile, open_cache=True):
    """The cache as a dict; failures are error objects. With ``open_cache`` the file is made ready for more rows."""
    data = _read(cachefile)[1]
    for row in data["cache"].values():
        for value in row.values():
            if value.__class__ is str and value in BY_NAME:
                row["__error__"] = BY_NAME[value]()
                break
    if open_cache:
        open_for_rows(cachefile)
    return data


def open_for_rows(path):
    """Takes the closing brackets off; writes a file beside it and moves it there, so that no row can be lost."""
    text = read_text(path).rstrip()
    body = text[:-1].rstrip()[:-1].rstrip()  # without "}" of the file and of the cache
    if not body.endswith(("{", ",")):
        body += ","
    _replace(path, body)


def close_cache(cachefile):
    """Puts the closing brackets back."""
    text = Path(cachefile).read_text()
    try:
        json.loads(text)
    except ValueError:
        text = text.rstrip()
        _replace(cachefile, (text[:-1] if text.endswith(",") else text) + "}\n}")


def _replace(path, text):
    beside = f"{path}.part-{os.getpid()}"
    Path(beside).write_text(text)
    os.replace(beside, path)


def store_cache(key, params, cachefile, cache):
    """Adds a row, to ``cache`` and to the file."""
    if not isinstance(cache, dict) or key in cache:
        return
    cache[key] = params
    if cachefile:
        row = {k: str(v) if isinstance(v, ErrorConfig) else v for k, v in params.items()}
        with open(cachefile, "a") as file:
            file.write("\n" + json.dumps({key: row}, cls=NpEncoder)[1:-1] + ",")
            file.flush()


class Cache:
    """The rows known before this run, and the file that gets the new ones. Without a path it holds rows only."""

    def __init__(self, path=None):
        self.path = path
        self.rows, self.names = {}, ()
        self.device_name = None

    @classmethod
    def open(cls, cache, header, simulation):
        """Begins or continues a cache file. ``header`` is what a new one begins with. Raises ValueError where the file
        holds another kernel's, device's, problem size's or other parameters' results: it is left as it is."""
        opened = cls(cache_path(cache))
        if opened.path.is_file():
            data = read_cache(opened.path, open_cache=False)
            _check(data, header, opened.path, simulation)
            opened.device_name = data["device_name"]
            opened.names = data["tune_params_keys"]
            opened.rows = data["cache"]  # simulation finds them by values, whatever their keys
            if not simulation:
                opened.rows = {key_of(row[n] for n in opened.names): row for row in data["cache"].values()}
                open_for_rows(opened.path)
        elif simulation:
            raise ValueError(f"Simulation mode requires an existing cachefile: file {opened.path} does not exist")
        else:
            text = json.dumps({**header, "cache": {}}, cls=NpEncoder, indent="")
            opened.path.write_text(text[: text.rindex("{") + 1])
        return opened

    def find(self, key):
        return self.rows.get(key)

    def by_values(self):
        """The rows by tuples of their values, in the order of the parameters."""
        return {tuple([row[name] for name in self.names]): row for row in self.rows.values()}

    def add(self, key, row):
        store_cache(key, row, self.path, self.rows)

    def close(self):
        if self.path:
            close_cache(self.path)


def _check(data, header, path, simulation):
    def refuse(what, cached, wanted):
        raise ValueError(f"Cannot load cache which contains results for different {what} (cache: {cached}, actual: {wanted}); "
                         f"{path} is left as it is: give another file")

    if not simulation and data["device_name"] != header["device_name"]:
        refuse("device", data["device_name"], header["device_name"])
    if data["kernel_name"] != header["kernel_name"]:
        refuse("kernel", data["kernel_name"], header["kernel_name"])
    sizes = data.get("problem_size"), header["problem_size"]
    if "problem_size" in data and "callable" not in sizes:
        cached, wanted = (list(np.atleast_1d(np.array(s, dtype=object))) for s in sizes)
        if [str(plain(v)) for v in cached] != [str(plain(v)) for v in wanted]:
            refuse("problem_size", *sizes)
    if data["tune_params_keys"] != header["tune_params_keys"]:
        if set(data["tune_params_keys"]) == set(header["tune_params_keys"]):
            raise ValueError("All tunable parameters are present, but the order is wrong: the cache has "
                             f"{data['tune_params_keys']}, tune_params has {header['tune_params_keys']}")
        raise ValueError("Cannot load cache which contains results obtained with different tunable parameters: the cache has "
                         f"{data['tune_params_keys']}, tune_params has {header['tune_params_keys']}")
