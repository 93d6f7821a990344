// How good and how fast searches are, everything replayed or drawn:
//
//   search_speed [--space FILE] [--recording FILE] [--strategies a,b] [--evaluations N]
//     a strategy's own microseconds per evaluation on a large space with synthetic values; evaluations replayed per
//     second
//   search_speed --cliffs SPACES [--first SEED] [--repeats N] [--threads N] [--strategies a,bayesian:ceiling=0.85]
//                [--slots N] [--seconds PER_EVALUATION]
//     drawn spaces that are hard to search (cliffs.hpp), the first strategy judged against random
//   search_speed --simulated PROBLEM,... [--device a100] and the options of --cliffs but the first two
//     energies of problems on a simulated device, each seed with its own noise (resource_cliffs.py draws problems)
//   search_speed --priors RECORDING,... [--kinds none,others,...] [--first SEED] [--repeats N]
//     recordings of the same kernel as priors of each other
//   search_speed --noisy RECORDING,... [--noise 0.05] [--first SEED] [--repeats N]
//     the final choice under noise
//   search_speed --wall RECORDING [--jobs N] [--looks 10,30,60] [--first SEED] [--repeats N] [--strategies a,b]
//     how far a wall time leads with what every configuration cost
//   search_speed --pareto RECORDING,... [--drawn SPACES] [--slots N] [--first SEED] [--repeats N] [--strategies a,b]
//     hypervolumes of several objectives
//
// --seconds tells strategies what an evaluation takes. Times are CPU time of the calling thread.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <sstream>

#include "base/hash.hpp"
#include "ergotune/problem_file.hpp"
#include "ergotune/strategy.hpp"
#include "evaluate/recorded/replay.hpp"
#include "tables.hpp"

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
    const auto requested = strategy->ask(1);
    if (requested.empty()) break;
    own += cpu_seconds() - mark;
    Outcome outcome;
    outcome.ok = true;
    outcome.values = {synthetic(space, requested.front(), positions)};
    outcome.seconds = seconds;
    mark = cpu_seconds();
    strategy->tell(requested.front(), outcome);
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
      const auto requested = strategy->ask(16);
      if (requested.empty()) break;
      for (const ConfigurationIndex index : requested) {
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

/// `--name value` pairs.
class Arguments {
 public:
  Arguments(int argc, char** argv) {
    for (int i = 1; i + 1 < argc; i += 2)
      values_[argv[i] + (std::strncmp(argv[i], "--", 2) == 0 ? 2 : 0)] = argv[i + 1];
  }
  bool has(const std::string& name) const { return values_.contains(name); }
  std::string text(const std::string& name, std::string otherwise = {}) const {
    const auto at = values_.find(name);
    return at == values_.end() ? otherwise : at->second;
  }
  double number(const std::string& name, double otherwise) const {
    return has(name) ? std::stod(text(name)) : otherwise;
  }
  std::size_t count(const std::string& name, std::size_t otherwise) const {
    return has(name) ? std::stoul(text(name)) : otherwise;
  }
  std::vector<std::string> list(const std::string& name, std::vector<std::string> otherwise) const {
    return has(name) ? split(text(name)) : otherwise;
  }
  /// What every table takes.
  template <class Options>
  Options common(Options options) const {
    options.repeats = count("repeats", options.repeats);
    options.first = count("first", options.first);
    options.threads = static_cast<int>(count("threads", 0));
    return options;
  }

 private:
  std::map<std::string, std::string> values_;
};

void cliff_table(const Arguments& arguments) {
  auto options = arguments.common(cliffs::TableOptions{});
  options.files = split(arguments.text("simulated"));
  options.device = arguments.text("device", options.device);
  options.spaces = options.files.empty() ? arguments.count("cliffs", options.spaces) : options.files.size();
  options.evaluations = std::min<std::size_t>(options.evaluations, arguments.count("evaluations", 400));
  options.strategies = arguments.list("strategies", options.strategies);
  options.slots = arguments.count("slots", 1);
  options.seconds = arguments.number("seconds", 0);
  cliffs::print_table(options);
}

void prior_table(const Arguments& arguments) {
  auto options = arguments.common(PriorTableOptions{});
  options.files = split(arguments.text("priors"));
  options.kinds = arguments.list("kinds", options.kinds);
  print_prior_table(options);
}

void noise_table(const Arguments& arguments) {
  auto options = arguments.common(NoiseTableOptions{});
  options.files = split(arguments.text("noisy"));
  options.noise = arguments.number("noise", options.noise);
  options.evaluations = std::min(options.evaluations, arguments.count("evaluations", options.evaluations));
  print_noise_table(options);
}

void wall_table(const Arguments& arguments) {
  auto options = arguments.common(WallTableOptions{});
  options.file = arguments.text("wall");
  options.strategies = arguments.list("strategies", options.strategies);
  options.jobs = arguments.count("jobs", options.jobs);
  if (arguments.has("looks")) {
    options.looks.clear();
    for (const std::string& look : split(arguments.text("looks"))) options.looks.push_back(std::stod(look));
  }
  print_wall_table(options);
}

void pareto_table(const Arguments& arguments) {
  auto options = arguments.common(ParetoTableOptions{});
  options.files = split(arguments.text("pareto"));
  options.spaces = arguments.count("drawn", 0);
  options.strategies = arguments.list("strategies", options.strategies);
  options.slots = arguments.count("slots", 1);
  print_pareto_table(options);
}

void speed_tables(const Arguments& arguments) {
  const std::string only = arguments.has("strategies") ? "," + arguments.text("strategies") + "," : "";
  const auto wanted = [&](const std::string& name) {
    return only.empty() || only.find("," + name + ",") != std::string::npos;
  };
  if (arguments.has("space")) {
    const std::size_t evaluations = arguments.count("evaluations", 2000);
    const SearchSpace space = load_problem(arguments.text("space")).build_space({});
    fmt::print("{} configurations, {} evaluations\n", space.size(), evaluations);
    for (const auto& description : strategies())
      if (wanted(description.name))
        fmt::print("{:<28} {:>10.2f} us per evaluation\n", description.name,
                   own_microseconds(space, description.name, evaluations, arguments.number("seconds", 0)));
  }
  if (arguments.has("recording")) {
    const ReplayTable table(load_recording(arguments.text("recording")));
    fmt::print("replay of {} configurations\n", table.space().size());
    for (const std::string name : {"brute_force", "random", "hill_climbing", "iterated_local_search", "genetic"})
      if (wanted(name)) fmt::print("{:<28} {:>10.0f} evaluations/s\n", name, replay_rate(table, name));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments(argc, argv);
  if (arguments.has("cliffs") || arguments.has("simulated"))
    cliff_table(arguments);
  else if (arguments.has("priors"))
    prior_table(arguments);
  else if (arguments.has("noisy"))
    noise_table(arguments);
  else if (arguments.has("wall"))
    wall_table(arguments);
  else if (arguments.has("pareto"))
    pareto_table(arguments);
  else
    speed_tables(arguments);
  return 0;
}
