// Times the building and use of one search space given as plain JSON ({"tune_params", "restrictions",
// "max_threads"}), and prints one JSON document. bench/space/compare.py runs it beside Kernel Tuner.
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/clock.hpp"
#include "base/hash.hpp"
#include "base/statistics.hpp"
#include "ergotune/problem_file.hpp"
#include "problem/tables/device_profile.hpp"

namespace {

using namespace ergotune;

/// Resident memory of this program at its peak, in bytes. Not from getrusage: that also counts what the
/// process held before it became this program.
std::size_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::size_t kibibytes = 0;
    if (word == "VmHWM:" && status >> kibibytes) return kibibytes * 1024;
  }
  return 0;
}

/// Processor time of this process: other programs on the machine do not count.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// A hash of the set that needs no order: the sum of the hashes of the configurations' texts.
std::uint64_t hash_of_set(const SearchSpace& space) {
  std::vector<std::vector<std::string>> texts;
  for (const auto& parameter : space.parameters()) {
    texts.emplace_back();
    for (const auto& value : parameter.values) texts.back().push_back(parameter.name + "=" + value.to_string() + ";");
  }
  std::vector<std::uint32_t> positions(space.dimensions());
  std::uint64_t sum = 0;
  std::string text;
  for (ConfigurationIndex i = 0; i < space.size(); ++i) {
    space.values_at(i, positions);
    text.clear();
    for (std::size_t p = 0; p < positions.size(); ++p) text += texts[p][positions[p]];
    sum += hash64(text);
  }
  return sum;
}

template <class F>
double seconds_each(std::size_t count, F f) {
  const double start = processor_seconds();
  for (std::size_t i = 0; i < count; ++i) f(i);
  return (processor_seconds() - start) / static_cast<double>(count);
}

}  // namespace

int main(int argc, char** argv) {
  std::string file, profile;
  int repeats = 21;
  bool hash = false;
  CLI::App app{"Times the building and use of a search space"};
  app.add_option("file", file, "Space: plain JSON or a problem file")->required();
  app.add_option("--repeats", repeats, "Builds timed");
  app.add_option("--profile", profile, "Device profile whose limits hold");
  app.add_flag("--hash", hash, "Hash the whole set");
  CLI11_PARSE(app, argc, argv);
  try {
    std::stringstream text;
    text << std::ifstream(file).rdbuf();
    Problem problem = parse_problem(text.str(), file);
    Constants constants;
    if (!profile.empty()) {
      const auto device = load_device_profile(profile);
      constants = problem.constants_for(device.name, device.properties);
    } else {
      constants = problem.constants_for("", {});
    }
    // Timed from the texts of the restrictions to the finished space, as the peer's timing is.
    std::vector<double> times;
    std::optional<SearchSpace> space;
    const double begin = host_seconds();
    for (int i = 0; i < repeats && (i < 3 || host_seconds() - begin < 5); ++i) {
      space.reset();
      const double start = processor_seconds();
      for (auto& restriction : problem.restrictions)
        if (!restriction.function)
          restriction.expression = Expression::parse(restriction.expression.text(), restriction.expression.place());
      space = problem.build_space(constants);
      times.push_back(processor_seconds() - start);
    }
    nlohmann::ordered_json document;
    document["cartesian"] = space->cartesian_size();
    document["valid"] = space->size();
    document["build_seconds_median"] = median(times);
    document["build_seconds_min"] = *std::ranges::min_element(times);
    document["memory_bytes"] = space->memory_bytes();
    document["peak_bytes"] = peak_bytes();
    if (!space->empty()) {
      Random random(1);
      std::vector<std::uint32_t> positions(space->dimensions());
      std::vector<ConfigurationIndex> indices(4096), found;
      for (auto& index : indices) index = space->sample(random);
      std::uint64_t sink = 0;
      const std::size_t reads = 200'000;
      document["values_at_seconds"] = seconds_each(reads, [&](std::size_t i) {
        space->values_at(indices[i % indices.size()], positions);
        sink += positions.back();
      });
      std::vector<std::vector<std::uint32_t>> rows(indices.size(), positions);
      for (std::size_t i = 0; i < indices.size(); ++i) space->values_at(indices[i], rows[i]);
      document["index_of_seconds"] =
          seconds_each(reads, [&](std::size_t i) { sink += *space->index_of(rows[i % rows.size()]); });
      document["neighbours_hamming_seconds"] = seconds_each(20'000, [&](std::size_t i) {
        space->neighbours(indices[i % indices.size()], Neighbourhood::hamming, found);
        sink += found.size();
      });
      document["neighbours_strictly_adjacent_seconds"] = seconds_each(20'000, [&](std::size_t i) {
        space->neighbours(indices[i % indices.size()], Neighbourhood::strictly_adjacent, found);
        sink += found.size();
      });
      document["sample_1000_seconds"] = seconds_each(10, [&](std::size_t) {
        for (const auto index : space->sample_distinct(1000, random)) {
          space->values_at(index, positions);
          sink += positions.back();
        }
      });
      document["checksum"] = sink;
    }
    if (hash) document["set_hash"] = fmt::format("{:016x}", hash_of_set(*space));
    fmt::print("{}\n", document.dump(2));
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
