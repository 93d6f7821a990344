#include "tune/target/target.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "evaluate/recorded/replay.hpp"
#include "evaluate/recorded/simulated.hpp"
#include "kernel/round.hpp"
#include "measure/execution_parameters.hpp"
#include "measure/observers/observer_registry.hpp"
#include "problem/tables/quantity.hpp"
#include "search/objective.hpp"
#include "tune/plans/occupancy_reduction.hpp"
#include "tune/target/target_checks.hpp"
#include "tune/target/target_clocks.hpp"
#include "tune/target/target_parts.hpp"

namespace ergotune {
namespace {

/// Removes configurations that were not recorded from the space: a search would request them again and again.
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
  target.notes.push_back(
      fmt::format("the recording holds {} of the {} configurations of this problem: they are what is searched",
                  list.size(), target.space->size()));
  target.space = std::make_shared<const SearchSpace>(SearchSpace::from_configurations(parameters, list));
}

void open_replay(Target& target, const std::string& file, const SetupOptions& options) {
  if (file.empty())
    throw UserError(
        "replay: needs the file to replay, as in replay:results.db (a store, a Kernel Tuner cache, T4 or CSV)");
  target.device.id = "replay:" + file;
  target.device.backend = "replay";
  const auto recording = std::make_shared<const Recording>(load_recording(file));
  validate_objective_quantities(options, target.problem, recording.get());
  target.device.name = recording->device.empty() ? "recorded device" : recording->device;
  target.constants = target.problem.constants_for(target.device.name, {});
  model_of_recording(target, options, *recording);
  // Execution parameters take the recorded values.
  for (const Parameter& recorded : recording->parameters) {
    if (recorded.kind == ParameterKind::code) continue;
    const auto& known = target.problem.parameters;
    const bool there =
        std::any_of(known.begin(), known.end(), [&](const Parameter& p) { return p.name == recorded.name; });
    if (!there) target.problem.parameters.push_back(recorded);
  }
  target.problem.execution_parameters.clear();
  // The recording replaces the device: only recorded configurations can be "run". If the restrictions of a problem need
  // properties of the device, the space consists of the recorded configurations.
  try {
    build_space(target, options);
    keep_recorded(target, *recording);
  } catch (const UserError&) {
    target.space = std::make_shared<const SearchSpace>(space_of(*recording));
  }
  target.evaluator = make_replay(recording, *target.space);
  target.truth = recorded_truth(recording, *target.space);
  target.identity = target.device.id;
  target.conditions = target.evaluator->description();
  for (const std::string& warning : recording->warnings) target.notes.push_back(warning);
}

/// The profile of "sim:a100" or "sim:a100,sim:a100", and how many times it is named.
std::pair<std::string, int> simulated_devices(const std::string& text) {
  std::string name;
  int count = 0;
  for (std::string part : split(text)) {
    if (!part.starts_with("sim:"))
      throw UserError(fmt::format("\"{}\": a simulated device shares its work with simulated ones only", text));
    part.erase(0, 4);
    if (count++ > 0 && part != name)
      throw UserError(fmt::format("\"{}\" names devices of different kinds, whose results cannot be compared", text));
    name = part;
  }
  return {name, count};
}

void open_simulated(Target& target, const SetupOptions& options) {
  const auto [name, gpus] = simulated_devices(options.run.device);
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
  simulation.seed = options.run.seed;
  simulation.gpus = gpus;
  target.evaluator = make_simulated(profile, target.problem, *target.space, simulation);
  const auto device = std::make_shared<const SimulatedDevice>(profile, target.problem, target.space->parameters());
  target.truth = [device](const Configuration& configuration) { return device->truth(configuration); };
  target.identity = target.device.id;
  target.conditions = fmt::format("{}, seed {}", target.evaluator->description(), options.run.seed);
  target.notes.push_back("every number below is simulated, nothing is measured");
}

std::vector<TargetKind>& target_kinds() {
  static std::vector<TargetKind> kinds;
  return kinds;
}

const TargetKind* kind_for(const Problem& problem, const SetupOptions& options) {
  for (const TargetKind& kind : target_kinds())
    if (kind.applies(problem, options)) return &kind;
  return nullptr;
}

}  // namespace

void register_target(TargetKind kind) { target_kinds().push_back(kind); }

void build_space(Target& target, const SetupOptions& options) {
  SpaceOptions space;
  space.threads = options.space_threads;
  target.space = std::make_shared<const SearchSpace>(target.problem.build_space(target.constants, space));
  if (target.space->empty()) {
    throw UserError(fmt::format("problem \"{}\" has no valid configuration on {}: {}", target.problem.name,
                                target.device.name, target.space->why_empty()));
  }
}

Objective objective_of(const Problem& problem, const std::vector<std::string>& further_metrics) {
  std::vector<Metric> metrics = known_metrics(problem);
  for (const std::string& name : further_metrics) metrics.push_back({name, Expression::constant(0), ""});
  return Objective::parse(problem.objective, metrics);
}

Target open_target(Problem problem, const SetupOptions& options) {
  Target target;
  target.original = problem;
  target.problem = std::move(problem);
  const bool replay = options.run.device.starts_with("replay:");
  if (!replay) validate_objective_quantities(options, target.problem, nullptr);
  if (replay) {
    open_replay(target, options.run.device.substr(7), options);
  } else if (const TargetKind* kind = kind_for(target.problem, options)) {
    kind->open(target, options);
  } else if (target.problem.program || !options.run.node_commands.empty() || !options.run.nodes.empty()) {
    throw UserError(fmt::format("this build of ergotune cannot tune {}: its extension \"{}\" was switched off",
                                target.problem.program ? "whole programs" : "on nodes",
                                target.problem.program ? "program" : "cluster"));
  } else if (options.run.device.starts_with("sim:")) {
    open_simulated(target, options);
  } else {
    open_live(target, options);
  }
  refuse_unknown_properties(target.problem, target.constants);
  if (options.run.occupancy > 0 && !replay) {
    LedgerOptions asking;
    asking.interrupted = options.interrupted;
    Ledger ledger(*target.space, *target.evaluator, std::move(asking));
    target.space = std::make_shared<const SearchSpace>(
        reduce_by_occupancy(target.problem, *target.space, ledger, options.run.occupancy, target.notes));
  }
  return target;
}

std::vector<std::string> devices_by_kind(const RunConfig& run, const Problem& problem) {
  const std::string& devices = run.device;
  const bool on_nodes = !run.node_commands.empty() || !run.nodes.empty();  // nodes list their devices themselves
  if (on_nodes || !names_several_devices(devices)) return {devices};
  std::vector<std::string> kinds;
  if (is_live(devices)) {
    for (const std::vector<DeviceInfo>& kind : by_kind(devices_named(devices, &problem))) {
      kinds.emplace_back();
      for (const DeviceInfo& device : kind) kinds.back() += (kinds.back().empty() ? "" : ",") + device.id;
    }
    return kinds;
  }
  // simulations and recordings of the same name are of the same kind
  for (const std::string& part : split(devices)) {
    const auto same = [&](const std::string& kind) { return kind == part || kind.starts_with(part + ","); };
    const auto known = std::find_if(kinds.begin(), kinds.end(), same);
    if (known == kinds.end())
      kinds.push_back(part);
    else
      *known += "," + part;
  }
  return kinds;
}

}  // namespace ergotune
