"""The objects that stand in a result row for a configuration that failed."""


class ErrorConfig(str):
    """A failure. It equals its own name, so that rows read from a file and rows of this run compare alike."""

    def __new__(cls, *_):
        return super().__new__(cls, cls.__name__)

    def __repr__(self):
        return self.__class__.__name__

    def __reduce__(self):
        return (self.__class__, ())


class InvalidConfig(ErrorConfig):
    """The device cannot run it."""


class CompilationFailedConfig(ErrorConfig):
    """It does not compile."""


class RuntimeFailedConfig(ErrorConfig):
    """It crashed, hung, or its output is wrong."""


class SkippableFailure(Exception):
    """Kernel Tuner's name for a failure that is one configuration's."""


class StopCriterionReached(Exception):
    """Kernel Tuner's name for a budget that is spent."""


BY_NAME = {kind.__name__: kind for kind in (ErrorConfig, InvalidConfig, CompilationFailedConfig, RuntimeFailedConfig)}

#: ergotune's statuses as Kernel Tuner's errors.
BY_STATUS = {
    "compile_error": CompilationFailedConfig, "launch_error": RuntimeFailedConfig, "runtime_error": RuntimeFailedConfig,
    "timeout": RuntimeFailedConfig, "wrong_result": RuntimeFailedConfig, "unsupported": InvalidConfig,
}


def check_result_type(row):
    """Whether a row's error, where it has one, is an error object."""
    return "__error__" not in row or isinstance(row["__error__"], ErrorConfig)
