"""JSON of NumPy's objects."""

import json
from typing import Any

import numpy as np


class NpEncoder(json.JSONEncoder):
    """NumPy's scalars and arrays as plain numbers and lists; anything else as its text."""

    def default(self, obj: Any) -> Any:
        if isinstance(obj, np.generic):
            return obj.item()
        if isinstance(obj, np.ndarray):
            return obj.tolist()
        return str(obj)


def plain(value: Any) -> Any:
    """A NumPy scalar as Python's."""
    return value.item() if isinstance(value, np.generic) else value
