"""T4 output files."""

import json
import platform
from importlib.metadata import distributions
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from ._absent import absent
from ._rows import CompilationFailedConfig, InvalidConfig, NpEncoder, RuntimeFailedConfig

_TIMES = {"compilation": "compile_time", "benchmark": "benchmark_time", "framework": "framework_time",
          "search_algorithm": "strategy_time", "validation": "verification_time"}


def get_input_file(filepath, validate=True):
    """A T1 file as a dict. Raises ValueError where it is none."""
    contents = json.loads(Path(filepath).read_text())
    missing = {"ConfigurationSpace", "KernelSpecification"} - set(contents)
    if validate and missing:
        raise ValueError(f"{filepath} is not a T1 file: it has no {', '.join(sorted(missing))}")
    return contents


def get_configuration_validity(error):
    """T4's name for an error object, or for a valid result."""
    for kind, word in ((CompilationFailedConfig, "compile"), (RuntimeFailedConfig, "runtime"), (InvalidConfig, "constraints")):
        if isinstance(error, kind):
            return word
    return "correct"


def get_configuration_validity2(result):
    """The same of a row."""
    return get_configuration_validity(result.get("__error__"))


def make_filenamepath(filenamepath):
    """Makes the folder that a file is to be in."""
    Path(filenamepath).parent.mkdir(parents=True, exist_ok=True)


def filename_ensure_json_extension(filename):
    """The name with .json at its end."""
    return filename if str(filename).endswith(".json") else f"{filename}.json"


def get_t4_results(results, tune_params, objective="time"):
    """Results of tune_kernel as a T4 document."""
    if isinstance(objective, (list, tuple)):
        raise ValueError("The T4 format does not support multiple objectives.")
    other = {*tune_params, *_TIMES.values(), "timestamp", "times", "__error__"}
    rows = []
    for result in results:
        measured = [{"name": k, "value": v, "unit": "ms" if k.startswith("time") else ""}
                    for k, v in result.items() if k not in other]
        row = {
            "configuration": {k: v for k, v in result.items() if k in tune_params},
            "times": {**{word: result.get(key, 0) for word, key in _TIMES.items()}, "runtimes": result.get("times", [])},
            "invalidity": get_configuration_validity2(result), "correctness": 1,
            "measurements": measured, "objectives": [objective],
        }
        if "timestamp" in result:
            row["timestamp"] = result["timestamp"]
        rows.append(row)
    return {"schema_version": "1.0.0", "metadata": {"timeunit": "milliseconds"}, "results": rows}


def get_t4_metadata():
    """T4's description of the machine and its software."""
    packages = sorted({f"{d.metadata['Name']}=={d.version}" for d in distributions() if d.metadata["Name"]})
    machine = {"processor": platform.processor(), "machine": platform.machine(), "system": platform.platform()}
    return {"schema_version": "1.0.0", "metadata": {
        "operating_system": platform.system(), "hardware": {"hardware_description": [machine]},
        "environment": {"device_query": {}, "requirements": packages}}}


def store_output_file(output_filename, results, tune_params, objective="time"):
    """Writes a T4 results file."""
    _write(output_filename, get_t4_results(results, tune_params, objective))


def store_metadata_file(metadata_filename):
    """Writes a T4 metadata file."""
    _write(metadata_filename, get_t4_metadata())


def import_class_from_file(file_path, class_name):
    """A class from a Python file; a file with relative imports is taken as a module of its folder's package."""
    file_path = Path(file_path)
    failure = None
    for name in (file_path.stem, f"{file_path.parent.stem}.{file_path.stem}"):
        spec = spec_from_file_location(name, file_path)
        if spec is None or not file_path.is_file():
            raise ImportError(f"there is no Python file {file_path}")
        module = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except ImportError as wrong:
            failure = failure or wrong
            continue
        if not hasattr(module, class_name):
            raise ImportError(f"{file_path} has no class {class_name!r}")
        return getattr(module, class_name)
    raise failure


def _write(filename, document):
    path = Path(filename_ensure_json_extension(str(filename)))
    make_filenamepath(path)
    path.write_text(json.dumps(document, cls=NpEncoder, indent=1))


__getattr__ = absent(__name__, {
    "input_file_schema": "validate with the schemas of the T1 repository", "output_file_schema":
    "validate with the schemas of the T4 repository", "get_device_query": "ergotune.devices() describes the devices",
    "get_dependencies": "get_t4_metadata() lists the packages",
})
