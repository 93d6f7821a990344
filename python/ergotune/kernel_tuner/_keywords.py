"""What each keyword of tune_kernel means here, for the table in docs/python.md. A test compares it with the signature."""

_SAME = "as in Kernel Tuner"

KEYWORDS = {
    "kernel_name": _SAME + "; a template's arguments may name parameters (CUDA)",
    "kernel_source": "text, file, list of files (the first is compiled), or a function, which is called for each configuration of "
                     "the space (up to 20,000)",
    "problem_size": "number, expression, function, or up to three of these; C and Fortran functions are called once, whatever it is",
    "arguments": "NumPy arrays and scalars, also complex, bool, structs and either byte order; CuPy's and PyTorch's tensors where they are; "
                 "Tunable and TunablePrecision (numbers of C functions that return their time excepted)",
    "tune_params": _SAME + "; nvml_gr_clock, nvml_mem_clock (MHz), nvml_pwr_limit (W), tegra_gr_clock (Hz) are set where NVMLObserver or "
                   "TegraObserver is among the observers, and restored (docs/clocks.md); cuda_sm_percentage is NotSupported",
    **dict.fromkeys(("grid_div_x", "grid_div_y", "grid_div_z"), "names, expressions, numbers, functions, lists of these"),
    "restrictions": "expressions, functions of a dict or of parameters by name, Constraint objects",
    "answer": _SAME + "; compared by value in the argument's type. A configuration with another answer is a RuntimeFailedConfig among the "
              "results, and a warning at the end (a RuntimeError where no answer is right); it ends the run there",
    "atol": _SAME + ", with relative tolerance 1e-5; 0 is 0",
    "verify": _SAME + ": function(answer, outputs) with or without atol; it measures in this process, and what it raises ends the run. "
              "False is a RuntimeFailedConfig, as for answer",
    "verbose": "prints why a configuration failed, and the space's size in simulation",
    "lang": "CUDA, CUPY, NVCUDA, PYCUDA (all the driver's API), OpenCL, HIP, C (as C++), Fortran; detected where it is not given. "
            "C with a Fortran file or compiler is Fortran. Julia and Hypertuner are NotSupported",
    "device": _SAME, "platform": _SAME,
    "smem_args": "size: number, expression or function; nothing else, and nothing for C and Fortran",
    "cmem_args": "NotSupported: pass a buffer; ignored in simulation",
    "texmem_args": "NotSupported: pass a buffer; ignored in simulation",
    "compiler": "of C (CXX) and Fortran (FC), for this call",
    "compiler_options": _SAME,
    "defines": "names to strings, parameters' names, or functions; parameters are macros in any case",
    "log": _SAME,
    "iterations": _SAME + "; times are of so many samples, each of as many launches as the clock needs",
    "block_size_names": _SAME + "; other spellings of the defaults (BLOCK_SIZE_X) count",
    "quiet": _SAME,
    "strategy": "Kernel Tuner's names, ergotune's own, or an object with tune(searchspace, runner, tuning_options): OptAlgWrapper",
    "strategy_options": "max_fevals, time_limit, x0, and what has a counterpart; the rest is named in a warning, what Kernel Tuner does "
                        "not know is a ValueError",
    "cache": _SAME + ": continued, written as it goes, readable there; another kernel's is refused and left alone",
    "metrics": _SAME,
    "simulation_mode": _SAME,
    "parallel": "NotSupported: ergotune.tune(problem, devices=[\"cuda:all\"]) measures on several GPUs, node_commands=[...] on several nodes; "
                "ignored in simulation",
    "observers": "one launch between the hooks, up to iterations of them, after the time was measured; OutputObserver and "
                 "PrologueObserver too. NVMLObserver, TegraObserver, PowerSensorObserver, PMTObserver (one platform) measure by "
                 "ergotune's own sensors (docs/energy.md); NCUObserver counts by ergotune's observer of hardware counters, without "
                 "nvmetrics (docs/counters.md); ContinuousObserver is NotSupported",
    "objective": _SAME, "objective_higher_is_better": _SAME, "objectives": _SAME,
    "seed": _SAME + ": None is another each time",
}
