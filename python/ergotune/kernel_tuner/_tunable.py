"""Arguments that depend on the configuration: each of a Tunable's arrays is an argument that is passed where its option is
chosen."""

from ._absent import NotSupported
from ._tensors import is_array, placed


def is_tunable(argument):
    """Whether it is a Tunable, ours or Kernel Tuner's own."""
    return any(base.__name__ == "Tunable" for base in type(argument).__mro__)


def selected(arguments, configuration):
    """The arguments as one configuration gets them."""
    return [a.select_for_configuration(configuration) if is_tunable(a) else a for a in arguments]


def leaves(position, argument):
    """[(name, what is passed, {key: options that lead to it})] of one place: one, or one for each of a Tunable's arrays."""
    if not is_tunable(argument):
        return [(f"arg{position}", placed(argument), ())]
    found = []
    for number, (option, chosen) in enumerate(argument.data.items()):
        for name, leaf, path in leaves(position, chosen):
            found.append((f"{name}_{number}", leaf, ((argument, option), *path)))
    return found


def named(arguments, configuration):
    """{name: what is passed} for one configuration, by place."""
    found = []
    for position, argument in enumerate(arguments):
        name = f"arg{position}"
        while is_tunable(argument):
            option = option_of(argument, configuration)
            numbers = {key: number for number, key in enumerate(argument.data)}
            name, argument = f"{name}_{numbers[option]}", argument.data[option]
        found.append((name, placed(argument)))
    return found


def option_of(argument, configuration):
    """The option that a Tunable has for a configuration. Raises KeyError where it has none."""
    key = argument.param_key
    if callable(key):
        option = key(configuration)
    elif key in configuration:
        option = configuration[key]
    else:
        option = eval(key, {}, dict(configuration))  # the user's own expression, as in Kernel Tuner
    if option not in argument.data:
        raise KeyError(f"'{option}' is not a valid parameter value, should be one of: {', '.join(map(str, argument.data))}")
    return option


class Conditions:
    """Expressions that hold where a leaf is chosen. ``generated(function, what)`` makes a parameter of a function."""

    def __init__(self, tune_params, generated):
        self._tune_params, self._generated, self._names = tune_params, generated, {}

    def of(self, path):
        """For the options that lead to a leaf; None where there are none."""
        return " and ".join(self._equals(argument, option) for argument, option in path) or None

    def _equals(self, argument, option):
        key = argument.param_key
        if isinstance(key, str) and key in self._tune_params:
            missing = [v for v in self._tune_params[key] if v not in argument.data]
            if missing:
                raise KeyError(f"the Tunable of {key} has no array for {missing[0]!r}: it has {', '.join(map(repr, argument.data))}")
            return f"({key} == {option!r})"
        if id(argument) not in self._names:
            options = list(argument.data)
            self._names[id(argument)] = self._generated(lambda values: options.index(option_of(argument, values)), "tunable")
        return f"({self._names[id(argument)]} == {list(argument.data).index(option)})"


class Current:
    """The current configuration, which the session passes on as it does to observers."""

    params = None

    def __init__(self, names):
        self._names = names

    def register_configuration(self, configuration):
        self.params = {name: configuration[name] for name in self._names}

    def before_start(self):
        """Nothing."""

    after_start = during = after_finish = before_start

    def get_results(self):
        return {}


def refuse_scalars(arguments, name):
    """A C function that returns its time is called through one signature."""
    for position, argument in enumerate(arguments):
        if is_tunable(argument) and any(not is_array(leaf) for _, leaf, _ in leaves(position, argument)):
            raise NotSupported(f"ergotune.kernel_tuner does not pass Tunable numbers to C functions that return their time ({name}): "
                               "a parameter is a macro in the source")
