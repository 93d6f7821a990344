// What the tuner itself costs per configuration: everything that is neither compiler nor kernel. A tiny
// OpenCL kernel is tuned by brute force with one compile worker, so that nothing overlaps, and the time that
// the workers report for compiling, verifying and measuring is taken off the wall clock.
//
// Two numbers are printed. "own" is that difference, median over the configurations: worker round trips,
// strategy, store, bookkeeping. "processor" is the user and system time of the session's own process per
// configuration, which other load on the machine does not disturb.
//
// With ERGOTUNE_KT_PYTHON naming a Python that has kernel-tuner and pyopencl, the same space is tuned by
// Kernel Tuner in the same run, and its own figure (framework time, total less compile, verification and
// benchmark) stands beside.
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/clock.hpp"
#include "base/process/process.hpp"
#include "base/statistics.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "evaluate/live/live_device.hpp"
#include "report/ranked_results.hpp"

namespace {

using namespace ergotune;

constexpr const char* kProblem = R"toml(
name = "tiny"
[parameters]
block_size_x = [8, 16, 32, 64, 128]
variant = "range(0, COUNT)"
[kernel]
function = "tiny"
source.opencl.text = '''
__kernel void tiny(__global const float* a, __global float* b, int n) {
  int i = get_global_id(0);
  if (i < n) b[i] = a[i] * 2.0f + 0.0f * variant;
}
'''
arguments = [
  { name = "a", type = "float32", count = 1024 },
  { name = "b", type = "float32", count = 1024, access = "write" },
  { name = "n", type = "int32", value = 1024 },
]
[kernel.launch]
global = ["1024"]
block = ["block_size_x"]
)toml";

constexpr const char* kKernelTuner = R"python(
import json, sys, time
import numpy as np
import kernel_tuner
source = """
__kernel void tiny(__global const float* a, __global float* b, int n) {
  int i = get_global_id(0);
  if (i < n) b[i] = a[i] * 2.0f + 0.0f * variant;
}
"""
count = int(sys.argv[1])
a = np.random.randn(1024).astype(np.float32)
arguments = [a, np.zeros_like(a), np.int32(1024)]
started = time.perf_counter()
results, environment = kernel_tuner.tune_kernel("tiny", source, 1024, arguments,
    {"block_size_x": [8, 16, 32, 64, 128], "variant": list(range(count))}, lang="OpenCL",
    answer=[None, 2 * a, None], atol=1e-6, quiet=True)
seconds = time.perf_counter() - started
ok = [r for r in results if isinstance(r["time"], float)]
framework = sorted(r["framework_time"] for r in ok)
spent = sum(r["compile_time"] + r["verification_time"] + r["benchmark_time"] for r in ok)
print(json.dumps({"configurations": len(ok), "seconds": seconds, "framework_ms": framework[len(framework) // 2],
                  "own_ms": (seconds * 1e3 - spent) / len(ok)}))
)python";

double processor_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

struct Figures {
  std::size_t configurations = 0;
  double seconds = 0, own_ms = 0, own_least_ms = 0, processor_ms = 0, compile_ms = 0, run_ms = 0;
};

/// Time between two results less what compiler and kernel took of it: with one worker and capacity 1 nothing
/// overlaps.
Figures tune(const std::string& device, const std::string& command, int variants, const std::filesystem::path& folder) {
  std::string text = kProblem;
  text.replace(text.find("COUNT"), 5, std::to_string(variants));
  Problem problem = parse_problem(text, folder / "tiny.toml");
  SetupOptions setup;
  setup.run.device = device;
  setup.run.store = folder / "tiny.db";
  setup.run.jobs = 1;
  setup.run.cache_folder = folder / "cache";
  setup.worker_command = {command, "worker"};
  PreparedSession prepared = prepare_session(std::move(problem), setup);
  SessionOptions options;
  options.strategy = "brute_force";
  options.confirm = false;
  std::vector<double> own;
  double last = 0, compile = 0, run = 0;
  options.progress = [&](const SessionProgress& progress) {
    if (!progress.last) return;
    const Measurement& m = progress.last->measurement;
    const double now = host_seconds();
    // The first few meet cold caches and workers that still start.
    if (progress.evaluated > 5) own.push_back(now - last - m.compile_seconds - m.verify_seconds - m.measure_seconds);
    compile += m.compile_seconds;
    run += m.verify_seconds + m.measure_seconds;
    last = now;
  };
  const double processor = processor_seconds();
  const SessionResult result = tune_session(prepared, options).run;
  Figures figures;
  figures.configurations = result.evaluated;
  const auto count = static_cast<double>(result.evaluated);
  figures.seconds = result.seconds;
  figures.own_ms = 1e3 * median(own);
  figures.own_least_ms = 1e3 * quantile(own, 0.1);
  figures.processor_ms = 1e3 * (processor_seconds() - processor) / count;
  figures.compile_ms = 1e3 * compile / count;
  figures.run_ms = 1e3 * run / count;
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The tuner's own time per configuration on a tiny OpenCL kernel"};
  std::string device = "opencl";
  std::string command = std::filesystem::path(own_program()).parent_path().parent_path() / "ergotune";
  int variants = 20;
  bool json = false;
  app.add_option("--device", device, "OpenCL device");
  app.add_option("--ergotune", command, "The command, for its workers");
  app.add_option("--variants", variants, "Five times as many configurations");
  app.add_flag("--json", json, "One JSON document");
  CLI11_PARSE(app, argc, argv);
  std::string pattern = (std::filesystem::temp_directory_path() / "ergotune-bench-XXXXXX").string();
  const std::filesystem::path folder = ::mkdtemp(pattern.data());
  ::mallopt(M_TRIM_THRESHOLD, 64 << 20);  // as the command does
  nlohmann::ordered_json document;
  int code = 0;
  try {
    const Figures figures = tune(device, command, variants, folder);
    document["ergotune"] = {{"configurations", figures.configurations},
                            {"seconds", figures.seconds},
                            {"own_ms", figures.own_ms},
                            {"own_ms_tenth_percentile", figures.own_least_ms},
                            {"processor_ms", figures.processor_ms},
                            {"compile_ms", figures.compile_ms},
                            {"run_ms", figures.run_ms}};
    if (const char* python = std::getenv("ERGOTUNE_KT_PYTHON")) {
      std::ofstream(folder / "kt.py") << kKernelTuner;
      ProcessOptions limits;
      limits.timeout = 900;
      const ProcessResult result = run_process({python, (folder / "kt.py").string(), std::to_string(variants)}, limits);
      const std::size_t line = result.out.rfind("{\"configurations\"");
      if (result.ok() && line != std::string::npos) {
        document["kernel_tuner"] = nlohmann::json::parse(result.out.substr(line));
      } else {
        fmt::print(stderr, "Kernel Tuner did not run: {}\n",
                   result.err.substr(result.err.size() > 500 ? result.err.size() - 500 : 0));
      }
    }
    if (json) {
      fmt::print("{}\n", document.dump(2));
    } else {
      fmt::print(
          "ergotune: {} configurations in {:.1f} s; per configuration: own {:.3f} ms (median; tenth percentile {:.3f} "
          "ms), own processor time {:.3f} ms, compiler {:.1f} ms, kernel and verification {:.1f} ms\n",
          figures.configurations, figures.seconds, figures.own_ms, figures.own_least_ms, figures.processor_ms,
          figures.compile_ms, figures.run_ms);
      if (document.contains("kernel_tuner")) {
        const auto& other = document["kernel_tuner"];
        fmt::print("Kernel Tuner: {} configurations in {:.1f} s; framework time {:.3f} ms (median), own {:.3f} ms\n",
                   other["configurations"].get<int>(), other["seconds"].get<double>(),
                   other["framework_ms"].get<double>(), other["own_ms"].get<double>());
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_tuner_overhead: {}\n", error.what());
    code = 1;
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  return code;
}
