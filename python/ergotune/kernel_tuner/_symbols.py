"""Functions of the configuration as expressions, found by calling them with symbols.

``lambda p: p["block_size_x"] / 32`` is an expression in another dress; called with symbols it says which one. What decides
by values (``if``, ``and``, a table) cannot be seen that way and gives None.
"""

from ._rows import plain


class Symbol:
    """A value that is not known yet, with the text that computes it."""

    def __init__(self, text):
        self.text = text

    def __bool__(self):
        raise TypeError("a symbol has no truth value")

    def __str__(self):
        return self.text

    def __repr__(self):
        raise TypeError("a symbol has no representation")

    def __format__(self, spec):
        raise TypeError("a symbol has no representation")

    __hash__ = None

    def __neg__(self):
        return Symbol(f"(-{self.text})")

    def __pos__(self):
        return self

    def __abs__(self):
        return Symbol(f"abs({self.text})")

    def __ceil__(self):
        return Symbol(f"ceil({self.text})")

    def __floor__(self):
        return Symbol(f"floor({self.text})")

    def __round__(self, digits=None):
        if digits:
            raise TypeError("only whole numbers")
        return Symbol(f"round({self.text})")


def _text(value):
    value = plain(value)
    if isinstance(value, Symbol):
        return value.text
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{value!r} is not a number")
    return repr(value)


def _binary(operator):
    def forward(self, other):
        return Symbol(f"({self.text} {operator} {_text(other)})")

    def backward(self, other):
        return Symbol(f"({_text(other)} {operator} {self.text})")

    return forward, backward


for _name, _operator in {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**"}.items():
    _forward, _backward = _binary(_operator)
    setattr(Symbol, f"__{_name}__", _forward)
    setattr(Symbol, f"__r{_name}__", _backward)


def trace(function, names):
    """What ``function`` gives for the parameters ``names``: an expression's text (for a sequence, a list of them), or None
    where it cannot be said without values."""
    try:
        found = function({name: Symbol(name) for name in names})
        if isinstance(found, (tuple, list)):
            return [_text(item) if not isinstance(item, str) else item for item in found]
        return found if isinstance(found, str) else _text(found)
    except Exception:  # whatever it does with a symbol: then it is called with values
        return None
