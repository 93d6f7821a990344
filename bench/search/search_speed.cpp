// A strategy's own time per evaluation, and how fast recorded results are replayed.
//
//   search_speed [--space FILE] [--strategies a,b] [--evaluations N] [--recording FILE]
//   search_speed --cliffs SPACES [--first SEED] [--repeats N] [--threads N] [--strategies a,bayesian:failure=0.6]
//                [--slots N] [--seconds PER_EVALUATION]
//   search_speed --priors RECORDING,RECORDING,... [--first SEED] [--repeats N]
//   search_speed --noisy RECORDING,... [--noise 0.05] [--first SEED] [--repeats N]
//
// The second form: strategies on drawn spaces that are hard to search (cliffs.hpp), the first of them judged
// against random. The third: recordings of the same kernel as priors of each other. The fourth: the final choice under noise. --seconds tells strategies what an evaluation takes (in both forms). The first form prints one line per strategy: microseconds of the strategy's own per
// evaluation on a large space with synthetic values, then evaluations per second from a recording. Times are
// CPU time of the calling thread.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "base/hash.hpp"
#include "cliff_table.hpp"
#include "noise_table.hpp"
#include "prior_table.hpp"
#include "ergotune/evaluate/replay.hpp"
#include "ergotune/problem/load.hpp"
#include "ergotune/search/strategy.hpp"

namespace {

using namespace ergotune;

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// A landscape with a valley, ridges from divisibility, and a little noise.
double synthetic(const SearchSpace& space, ConfigurationIndex index, std::vector<std::uint32_t>& positions) {
  space.values_at(index, positions);
  double sum = 0;
  for (std::size_t p = 0; p < positions.size(); ++p) {
    const double count = static_cast<double>(space.parameters()[p].values.size());
    const double x = (positions[p] + 0.5) / count - 0.3 - 0.05 * static_cast<double>(p % 8);
    sum += x * x + (positions[p] % 2 == 1 ? 0.05 : 0.0);
  }
  const std::uint64_t noise = hash64({reinterpret_cast<const char*>(&index), sizeof index});
  return std::exp(sum) * (1 + 0.02 * static_cast<double>(noise % 1000) / 1000);
}

double own_microseconds(const SearchSpace& space, const std::string& name, std::size_t evaluations, double seconds) {
  StrategyContext context;
  context.space = &space;
  context.budget = evaluations;
  std::vector<std::uint32_t> positions(space.dimensions());
  double own = 0;
  double mark = cpu_seconds();
  const auto strategy = make_strategy(name, context);
  std::size_t done = 0;
  while (done < evaluations) {
    const auto asked = strategy->ask(1);
    if (asked.empty()) break;
    own += cpu_seconds() - mark;
    Outcome outcome;
    outcome.ok = true;
    outcome.values = {synthetic(space, asked.front(), positions)};
    outcome.seconds = seconds;
    mark = cpu_seconds();
    strategy->tell(asked.front(), outcome);
    ++done;
  }
  return 1e6 * (own + cpu_seconds() - mark) / static_cast<double>(std::max<std::size_t>(1, done));
}

// The whole recording, replayed by one strategy again and again; evaluations per second, the strategy
// included.
double replay_rate(const ReplayTable& table, const std::string& name) {
  std::vector<double> values(table.space().size());
  const RecordedColumn* time = table.recording().column("time");
  for (ConfigurationIndex i = 0; i < values.size(); ++i) values[i] = time->value[table.row(i)];
  double best_rate = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    StrategyContext context;
    context.space = &table.space();
    context.seed = seed;
    const double start = cpu_seconds();
    const auto strategy = make_strategy(name, context);
    std::size_t done = 0;
    Outcome outcome;
    outcome.values = {0.0};
    for (;;) {
      const auto asked = strategy->ask(16);
      if (asked.empty()) break;
      for (const ConfigurationIndex index : asked) {
        outcome.ok = table.status(index) == Status::ok && std::isfinite(values[index]);
        outcome.values[0] = values[index];
        strategy->tell(index, outcome);
        ++done;
      }
    }
    best_rate = std::max(best_rate, static_cast<double>(done) / (cpu_seconds() - start));
  }
  return best_rate;
}

}  // namespace

int main(int argc, char** argv) {
  std::string space_file, recording_file, only;
  std::size_t evaluations = 2000;
  cliffs::TableOptions cliffs;
  cliffs.spaces = 0;
  PriorTableOptions priors;
  NoiseTableOptions noisy;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--space") == 0) space_file = argv[i + 1];
    if (std::strcmp(argv[i], "--recording") == 0) recording_file = argv[i + 1];
    if (std::strcmp(argv[i], "--strategies") == 0) only = "," + std::string(argv[i + 1]) + ",";
    if (std::strcmp(argv[i], "--evaluations") == 0) evaluations = std::stoul(argv[i + 1]);
    if (std::strcmp(argv[i], "--cliffs") == 0) cliffs.spaces = std::stoul(argv[i + 1]);
    if (std::strcmp(argv[i], "--first") == 0) cliffs.first = std::stoul(argv[i + 1]);
    if (std::strcmp(argv[i], "--repeats") == 0) cliffs.repeats = std::stoul(argv[i + 1]);
    if (std::strcmp(argv[i], "--priors") == 0) priors.files = split(argv[i + 1]);
    if (std::strcmp(argv[i], "--noisy") == 0) noisy.files = split(argv[i + 1]);
    if (std::strcmp(argv[i], "--noise") == 0) noisy.noise = std::stod(argv[i + 1]);
    if (std::strcmp(argv[i], "--threads") == 0) cliffs.threads = std::stoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--slots") == 0) cliffs.slots = std::stoul(argv[i + 1]);
    if (std::strcmp(argv[i], "--seconds") == 0) cliffs.seconds = std::stod(argv[i + 1]);
  }
  if (!noisy.files.empty()) {
    noisy.repeats = cliffs.repeats;
    noisy.evaluations = std::min<std::size_t>(noisy.evaluations, evaluations);
    noisy.first = cliffs.first;
    noisy.threads = cliffs.threads;
    print_noise_table(noisy);
    return 0;
  }
  if (!priors.files.empty()) {
    priors.repeats = cliffs.repeats;
    priors.first = cliffs.first;
    priors.threads = cliffs.threads;
    print_prior_table(priors);
    return 0;
  }
  if (cliffs.spaces > 0) {
    cliffs.evaluations = std::min<std::size_t>(cliffs.evaluations, evaluations);
    if (!only.empty()) cliffs.strategies = split(only.substr(1));
    cliffs::print_table(cliffs);
    return 0;
  }
  const auto wanted = [&](const std::string& name) {
    return only.empty() || only.find("," + name + ",") != std::string::npos;
  };
  if (!space_file.empty()) {
    const SearchSpace space = load_problem(space_file).build_space({});
    fmt::print("{} configurations, {} evaluations\n", space.size(), evaluations);
    for (const auto& description : strategies())
      if (wanted(description.name))
        fmt::print("{:<28} {:>10.2f} us per evaluation\n", description.name,
                   own_microseconds(space, description.name, evaluations, cliffs.seconds));
  }
  if (!recording_file.empty()) {
    const ReplayTable table(load_recording(recording_file));
    fmt::print("replay of {} configurations\n", table.space().size());
    for (const std::string name :
         {"brute_force", "random", "hill_climbing", "iterated_local_search", "genetic"})
      if (wanted(name)) fmt::print("{:<28} {:>10.0f} evaluations/s\n", name, replay_rate(table, name));
  }
  return 0;
}
