// Loading a large Kernel Tuner cache. Without an argument it writes one first: the SGEMM space of the field's
// papers (116,928 configurations, 32 times each, about 128 MB), with invented times. Prints one line per
// repeat; compare with
//   python3 -c "import json,time,resource; t=time.time(); json.load(open(FILE)); print(time.time()-t,
//   resource.getrusage(resource.RUSAGE_SELF).ru_maxrss//1024)"
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include "base/clock.hpp"
#include "ergotune/problem_file.hpp"
#include "ergotune/random.hpp"
#include "store/formats/recording.hpp"

namespace {

constexpr const char* kSpace = R"json({"name": "gemm", "tune_params": {
  "GEMMK": [0], "MWG": [16, 32, 64, 128], "NWG": [16, 32, 64, 128], "KWG": [16, 32], "MDIMC": [8, 16, 32],
  "NDIMC": [8, 16, 32], "MDIMA": [8, 16, 32], "NDIMB": [8, 16, 32], "KWI": [2], "VWM": [1, 2, 4, 8],
  "VWN": [1, 2, 4, 8], "STRM": [0, 1], "STRN": [0, 1], "SA": [0, 1], "SB": [0, 1], "KREG": [1], "PRECISION": [32]},
  "restrictions": ["KWG % KWI == 0", "MWG % (MDIMC * VWM) == 0", "NWG % (NDIMC * VWN) == 0",
  "MWG % (MDIMA * VWM) == 0", "NWG % (NDIMB * VWN) == 0", "KWG % ((MDIMC * NDIMC)/MDIMA) == 0",
  "KWG % ((MDIMC * NDIMC)/NDIMB) == 0", "not (MWG == 128 and NWG == 128 and MDIMC == 8 and NDIMC == 8)"]})json";

void write_cache(const std::string& file) {
  using namespace ergotune;
  const Problem problem = parse_problem(kSpace, "gemm.json");
  const SearchSpace space = problem.build_space({});
  std::FILE* out = std::fopen(file.c_str(), "wb");
  if (!out) throw Error("cannot write " + file);
  std::string keys, values;
  for (const Parameter& parameter : problem.parameters) {
    keys += fmt::format("{}\n\"{}\"", keys.empty() ? "" : ",", parameter.name);
    std::string list;
    for (const Value& value : parameter.values)
      list += fmt::format("{}\n{}", list.empty() ? "" : ",", value.to_string());
    values += fmt::format("{}\n\"{}\": [{}\n]", values.empty() ? "" : ",", parameter.name, list);
  }
  fmt::print(out,
             "{{\n\"device_name\": \"Invented GPU\",\n\"kernel_name\": \"Xgemm\",\n\"tune_params_keys\": [{}\n],\n"
             "\"tune_params\": {{{}\n}},\n\"objective\": \"time\",\n\"cache\": {{",
             keys, values);
  Random random(1);
  for (ConfigurationIndex index = 0; index < space.size(); ++index) {
    const Configuration configuration = space.configuration(index);
    std::string key, entry, times;
    for (std::size_t p = 0; p < configuration.size(); ++p) {
      key += (p ? "," : "") + configuration[p].to_string();
      entry += fmt::format("\"{}\": {}, ", problem.parameters[p].name, configuration[p].to_string());
    }
    const double time = 1 + 99 * random.uniform();
    for (int i = 0; i < 32; ++i) times += fmt::format("{}{}", i ? ", " : "", time * (0.99 + 0.02 * random.uniform()));
    fmt::print(out,
               "{}\n\"{}\": {{{}\"time\": {}, \"times\": [{}], \"compile_time\": {}, \"verification_time\": 0, "
               "\"benchmark_time\": {}, \"GFLOP/s\": {}, \"strategy_time\": 0, \"framework_time\": {}, "
               "\"timestamp\": \"2023-12-21 10:44:42.236642+00:00\"}}",
               index ? "," : "", key, entry, time, times, 900 * random.uniform(), 900 * random.uniform(), 9e3 / time,
               3 * random.uniform());
  }
  fmt::print(out, "}}\n}}");
  std::fclose(out);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string file =
      argc > 1 ? argv[1] : (std::filesystem::temp_directory_path() / "ergotune_gemm_cache.json").string();
  if (argc < 2 && !std::filesystem::exists(file)) write_cache(file);
  const double megabytes = static_cast<double>(std::filesystem::file_size(file)) / 1e6;
  double best = 1e9;
  for (int repeat = 0; repeat < 7; ++repeat) {
    rusage before{}, after{};
    getrusage(RUSAGE_SELF, &before);
    const double begin = ergotune::host_seconds();
    const ergotune::Recording recording = ergotune::load_recording(file);
    const double seconds = ergotune::host_seconds() - begin;
    getrusage(RUSAGE_SELF, &after);
    const auto cpu = [](const rusage& u) {
      return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
             static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
    };
    best = std::min(best, seconds);
    fmt::print("{} configurations, {:.0f} MB: {:.3f} s ({:.3f} s of processor time), peak memory {} MB\n",
               recording.size(), megabytes, seconds, cpu(after) - cpu(before), after.ru_maxrss / 1024);
  }
  fmt::print("best {:.3f} s, {:.0f} MB/s\n", best, megabytes / best);
}
