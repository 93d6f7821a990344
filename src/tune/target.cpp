#include "ergotune/tune/target.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "ergotune/base/error.hpp"
#include "ergotune/evaluate/replay.hpp"
#include "ergotune/evaluate/simulated.hpp"
#include "ergotune/measure/execution_parameters.hpp"
#include "ergotune/measure/observer_registry.hpp"
#include "ergotune/problem/quantity.hpp"
#include "ergotune/search/objective.hpp"
#include "kernel/round.hpp"
#include "search/objective_text.hpp"
#include "tune/occupancy_reduction.hpp"
#include "tune/target_clocks.hpp"
#include "tune/target_parts.hpp"

namespace ergotune {
namespace {

/// Leaves out of the space what was not recorded: a search would run into it again and again.
void keep_recorded(Target& target, const Recording& recording) {
  const auto& parameters = target.space->parameters();
  std::vector<std::optional<std::size_t>> places;
  for (const Parameter& parameter : parameters) {
    std::optional<std::size_t> place;
    for (std::size_t i = 0; i < recording.parameters.size(); ++i) {
      if (recording.parameters[i].name == parameter.name) place = i;
    }
    places.push_back(place);
  }
  std::vector<Configuration> list;
  for (std::size_t row = 0; row < recording.size(); ++row) {
    const Configuration recorded = recording.configuration(row);
    Configuration configuration;
    for (std::size_t i = 0; i < places.size(); ++i)
      configuration.push_back(places[i] ? recorded[*places[i]] : parameters[i].values.front());
    if (target.space->index_of(configuration)) list.push_back(std::move(configuration));
  }
  if (list.empty() || list.size() >= target.space->size()) return;
  target.notes.push_back(fmt::format("the recording holds {} of the {} configurations of this problem: they are what is searched",
                                     list.size(), target.space->size()));
  target.space = std::make_shared<const SearchSpace>(SearchSpace::from_configurations(parameters, list));
}

/// Names that stand in the objective itself.
std::vector<std::string> names_in(const ObjectiveSpec& spec) {
  const search::ObjectiveText text = search::parse_objective_text(spec);
  std::vector<std::string> names;
  const auto add = [&](const Expression& expression) {
    for (const std::string& name : expression.names())
      names.push_back(name.starts_with(search::kBestPrefix) ? name.substr(std::string_view(search::kBestPrefix).size()) : name);
  };
  for (const auto& term : text.terms) add(term.expression);
  for (const auto& condition : text.conditions) {
    add(condition.left);
    add(condition.right);
  }
  return names;
}

/// A metric that the objective rests on and that names nothing has a value for no configuration.
void refuse_empty_metrics(const Problem& problem, const std::vector<std::string>& said, const Recording* recording) {
  std::vector<std::string> known = said;
  for (const auto& [name, value] : problem.constants) known.push_back(name);
  for (const auto& [device, values] : problem.constants_by_device)
    for (const auto& [name, value] : values) known.push_back(name);
  for (const Parameter& parameter : problem.parameters) known.push_back(parameter.name);
  if (recording)
    for (const Parameter& parameter : recording->parameters) known.push_back(parameter.name);
  if (!problem.execution_parameters.empty())
    known.insert(known.end(), {"core_clock_mhz", "memory_clock_mhz", "power_limit_w"});
  const auto knows = [](const std::vector<std::string>& list, const std::string& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  std::vector<std::string> needed = names_in(problem.objective);
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const std::string wanted = needed[i];
    const auto metric = std::find_if(problem.metrics.begin(), problem.metrics.end(),
                                     [&](const Metric& m) { return m.name == wanted; });
    if (metric == problem.metrics.end()) continue;
    for (const std::string& name : metric->expression.names()) {
      if (!knows(needed, name)) needed.push_back(name);
      // the device's properties are known once it is open
      if (name.find('.') != name.npos || knows(known, name)) continue;
      throw UserError(fmt::format("metric \"{}\": there is no quantity, metric, constant or parameter \"{}\"{}",
                                  metric->name, name, suggestion(name, known)),
                      metric->expression.place());
    }
  }
}

/// An objective over what nobody will ever say would spend the whole budget and find nothing. Names that the problem's
/// metrics explain are not among Objective::quantities().
void refuse_what_nobody_says(const TargetOptions& options, const Problem& problem, const Recording* recording) {
  if (!options.observers.empty()) return;  // the application's own bring names that only they know
  std::vector<std::string> observed;
  for (const ObserverSpec& spec : problem.observers)
    for (std::string& name : quantities_of(spec)) observed.push_back(std::move(name));
  std::vector<std::string> said = observed;
  for (const QuantityInfo& info : quantities()) {
    if (info.producer != Producer::observer) said.emplace_back(info.name);
  }
  for (std::string& name : mix_quantities(problem)) said.push_back(std::move(name));
  if (recording) {
    said.clear();
    for (const RecordedColumn& column : recording->columns) said.push_back(column.name);
  }
  for (const Metric& metric : problem.metrics) said.push_back(metric.name);
  said.insert(said.end(), options.further_metrics.begin(), options.further_metrics.end());
  refuse_empty_metrics(problem, said, recording);
  const Objective objective = objective_of(problem, options.further_metrics);
  for (const std::string& name : objective.quantities()) {
    if (std::find(said.begin(), said.end(), name) != said.end()) continue;
    const std::string what = fmt::format("objective \"{}\": nothing here says \"{}\"", problem.objective.text, name);
    if (const std::string observer = recording ? "" : observer_of(name); !observer.empty()) {
      const bool named = observer == "counters";
      throw UserError(fmt::format("{} unless its observer is asked for: observe = [\"{}\"]{}", what, observer,
                                  named ? fmt::format(", or [observers] counters = {{ metrics = [\"{}\"] }}", name) : ""),
                      problem.objective.place);
    }
    throw UserError(fmt::format("{}{}{}", what, suggestion(name, said),
                                recording ? "" : "; [metrics] of the problem file makes more"),
                    problem.objective.place);
  }
}

void open_replay(Target& target, const std::string& file, const TargetOptions& options) {
  if (file.empty())
    throw UserError("replay: needs the file to replay, as in replay:results.db (a store, a Kernel Tuner cache, T4 or CSV)");
  target.device.id = "replay:" + file;
  target.device.backend = "replay";
  const auto recording = std::make_shared<const Recording>(load_recording(file));
  refuse_what_nobody_says(options, target.problem, recording.get());
  target.device.name = recording->device.empty() ? "recorded device" : recording->device;
  target.constants = target.problem.constants_for(target.device.name, {});
  model_of_recording(target, options, *recording);
  // Execution parameters have the values that were recorded.
  for (const Parameter& recorded : recording->parameters) {
    if (recorded.kind == ParameterKind::code) continue;
    const auto& known = target.problem.parameters;
    const bool there =
        std::any_of(known.begin(), known.end(), [&](const Parameter& p) { return p.name == recorded.name; });
    if (!there) target.problem.parameters.push_back(recorded);
  }
  target.problem.execution_parameters.clear();
  // The recording is the device: what it holds is what can be "run". A problem whose restrictions need a
  // device's properties is searched over the recorded configurations.
  try {
    build_space(target, options);
    keep_recorded(target, *recording);
  } catch (const UserError&) {
    target.space = std::make_shared<const SearchSpace>(space_of(*recording));
  }
  target.evaluator = make_replay(recording, *target.space);
  target.truth = recorded_truth(recording, *target.space);
  target.identity = target.device.id;
  target.conditions = target.former_conditions = target.evaluator->description();
  for (const std::string& warning : recording->warnings) target.notes.push_back(warning);
}

/// The profile of "sim:a100" or "sim:a100,sim:a100", and how often it is named.
std::pair<std::string, int> simulated_boards(const std::string& text) {
  std::istringstream parts(text);
  std::string name;
  int count = 0;
  for (std::string part; std::getline(parts, part, ','); ++count) {
    if (!part.starts_with("sim:")) throw UserError(fmt::format("\"{}\": a simulated device shares its work with simulated ones only", text));
    part.erase(0, 4);
    if (count > 0 && part != name)
      throw UserError(fmt::format("\"{}\" names boards of different kinds, whose results cannot be compared", text));
    name = part;
  }
  return {name, count};
}

void open_simulated(Target& target, const TargetOptions& options) {
  const auto [name, boards] = simulated_boards(options.device);
  const DeviceProfile profile = load_device_profile(name);
  target.device.id = "sim:" + name;
  target.device.backend = "simulated";
  target.device.name = "simulated " + profile.name;
  target.device.properties = profile.properties;
  target.base_clock_mhz = base_clock_of(profile.name, *make_profile_control(profile));
  resolve_execution_parameters(target.problem, profile, clocks_by_simulation(target, options));
  target.constants = target.problem.constants_for(profile.name, profile.properties);
  if (options.adapt) options.adapt(target.problem, profile.properties);
  build_space(target, options);
  SimulationOptions simulation;
  simulation.seed = options.simulation_seed;
  simulation.boards = boards;
  target.evaluator = make_simulated(profile, target.problem, *target.space, simulation);
  const auto device =
      std::make_shared<const SimulatedDevice>(profile, target.problem, target.space->parameters());
  target.truth = [device](const Configuration& configuration) { return device->truth(configuration); };
  target.identity = target.device.id;
  target.conditions = target.former_conditions =
      fmt::format("{}, seed {}", target.evaluator->description(), options.simulation_seed);
  target.notes.push_back("every number below is simulated, nothing is measured");
}

}  // namespace

void build_space(Target& target, const TargetOptions& options) {
  SpaceOptions space;
  space.threads = options.space_threads;
  target.space = std::make_shared<const SearchSpace>(target.problem.build_space(target.constants, space));
  if (target.space->empty()) {
    throw UserError(fmt::format("problem \"{}\" has no valid configuration on {}: {}", target.problem.name,
                                target.device.name, target.space->why_empty()));
  }
}

Objective objective_of(const Problem& problem, const std::vector<std::string>& further_metrics) {
  std::vector<Metric> metrics = problem.metrics;
  for (const std::string& name : further_metrics) metrics.push_back({name, Expression::constant(0), ""});
  return Objective::parse(problem.objective, metrics);
}

TargetOptions TargetOptions::from(const Problem& problem) {
  TargetOptions options;
  const Settings& settings = problem.settings;
  options.device = settings.device;
  options.controls = settings.controls;
  options.live = LiveOptions::from(settings);
  options.simulation_seed = settings.seed;
  options.occupancy = settings.occupancy;
  return options;
}

Target open_target(Problem problem, const TargetOptions& options) {
  Target target;
  target.original = problem;
  target.problem = std::move(problem);
  const bool replay = options.device.starts_with("replay:");
  if (!replay) refuse_what_nobody_says(options, target.problem, nullptr);
  if (replay) {
    open_replay(target, options.device.substr(7), options);
  } else if (!options.live.workers.empty() || !options.live.nodes.empty()) {
    open_nodes(target, options);
  } else if (options.device.starts_with("sim:")) {
    open_simulated(target, options);
  } else {
    open_live(target, options);
  }
  if (options.occupancy > 0 && !replay) {
    LedgerOptions asking;
    asking.interrupted = options.interrupted;
    Ledger ledger(*target.space, *target.evaluator, std::move(asking));
    target.space = std::make_shared<const SearchSpace>(
        reduce_by_occupancy(target.problem, *target.space, ledger, options.occupancy, target.notes));
  }
  return target;
}

}  // namespace ergotune
