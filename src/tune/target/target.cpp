#include "tune/target/target.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.hpp"
#include "device/backend.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "evaluate/recorded/replay.hpp"
#include "evaluate/recorded/simulated.hpp"
#include "kernel/macro_clashes.hpp"
#include "kernel/problem_notes.hpp"
#include "kernel/round.hpp"
#include "measure/code_restrictions.hpp"
#include "measure/execution_parameters.hpp"
#include "measure/metrics.hpp"
#include "measure/observers/observer_registry.hpp"
#include "problem/program.hpp"
#include "problem/tables/quantity.hpp"
#include "search/objective_text.hpp"
#include "store/formats/recording.hpp"
#include "store/formats/recording_builder.hpp"
#include "tune/plans/occupancy_reduction.hpp"
#include "tune/target/target_clocks.hpp"
#include "tune/target/target_parts.hpp"

namespace ergotune {
namespace {

/// The names that the text of the objective itself contains.
std::vector<std::string> names_in(const ObjectiveSpec& spec) {
  const search::ObjectiveText text = search::parse_objective_text(spec);
  std::vector<std::string> names;
  const auto add = [&](const Expression& expression) {
    for (const std::string& name : expression.names())
      names.push_back(name.starts_with(search::kBestPrefix) ? name.substr(std::string_view(search::kBestPrefix).size())
                                                            : name);
  };
  for (const auto& term : text.terms) add(term.expression);
  for (const auto& condition : text.conditions) {
    add(condition.left);
    add(condition.right);
  }
  return names;
}

/// Throws UserError for a metric that names an unknown quantity and hence never has a value. Metrics that the objective
/// does not use may name quantities that are not measured this time (of an observer that was not requested), but no
/// unknown ones.
void refuse_empty_metrics(const Problem& problem, const std::vector<std::string>& declared,
                          const std::vector<std::string>& observed, const Recording* recording) {
  std::vector<std::string> known = declared;
  for (const auto& [name, value] : problem.constants) known.push_back(name);
  for (const auto& [device, values] : problem.constants_by_device)
    for (const auto& [name, value] : values) known.push_back(name);
  for (const Parameter& parameter : problem.parameters) known.push_back(parameter.name);
  if (recording)
    for (const Parameter& parameter : recording->parameters) known.push_back(parameter.name);
  if (!problem.execution_parameters.empty())
    known.insert(known.end(), {"core_clock_mhz", "memory_clock_mhz", "power_limit_w"});
  const auto knows = [](const std::vector<std::string>& list, const std::string& name) {
    return std::ranges::find(list, name) != list.end();
  };
  const auto refuse = [&](const Metric& metric, const std::string& name) {
    // the device's properties are known once it is open
    if (name.starts_with("device.") || knows(known, name)) return;
    throw UserError(fmt::format("metric \"{}\": there is no quantity, metric, constant or parameter \"{}\"{}",
                                metric.name, name, suggestion(name, known)),
                    metric.expression.place());
  };
  std::vector<std::string> needed = names_in(problem.objective);
  for (std::size_t i = 0; i < needed.size(); ++i) {
    const std::string wanted = needed[i];
    const auto metric = std::ranges::find_if(problem.metrics, [&](const Metric& m) { return m.name == wanted; });
    if (metric == problem.metrics.end()) continue;
    for (const std::string& name : metric->expression.names()) {
      if (!knows(needed, name)) needed.push_back(name);
      refuse(*metric, name);
    }
  }
  for (const Metric& metric : problem.metrics)
    for (const std::string& name : metric.expression.names())
      if (!quantity_info(name) && observer_of(name).empty() && !knows(observed, name)) refuse(metric, name);
}

/// Whether these quantities are measured without being requested.
bool declares(const Problem& problem, const QuantityInfo& info) {
  if (problem.program && (info.name == "idle_subtracted_energy" || info.name == "corrected_energy")) return false;
  switch (info.producer) {
    case Producer::observer:
      return false;
    case Producer::program:
      return problem.program != nullptr;
    case Producer::compiler:
    case Producer::verification:
      return problem.program == nullptr;
    default:
      return true;
  }
}

/// Throws UserError if the objective uses an unknown quantity: the session would spend its whole budget without a
/// result. Objective::quantities() does not contain the names of the problem's metrics. `recording`: the recording that
/// replaces the device; null for a device.
void validate_objective_quantities(const SetupOptions& options, const Problem& problem, const Recording* recording) {
  if (!options.observers.empty()) return;  // the application's observers may add quantities that are unknown here
  std::vector<std::string> observed;
  for (const ObserverSpec& spec : problem.observers)
    for (std::string& name : quantities_of(spec)) observed.push_back(std::move(name));
  std::vector<std::string> declared = observed;
  for (const QuantityInfo& info : quantities()) {
    if (declares(problem, info)) declared.emplace_back(info.name);
  }
  for (std::string& name : per_kernel_quantities(problem)) declared.push_back(std::move(name));
  if (problem.program)
    for (const auto& [name, pattern] : problem.program->output) declared.push_back(name);
  if (recording) {
    declared.clear();
    for (const RecordedColumn& column : recording->columns) declared.push_back(column.name);
  }
  for (const Metric& metric : problem.metrics) declared.push_back(metric.name);
  declared.insert(declared.end(), options.further_metrics.begin(), options.further_metrics.end());
  refuse_empty_metrics(problem, declared, observed, recording);
  const Objective objective = objective_of(problem, options.further_metrics);
  for (const std::string& name : objective.quantities()) {
    if (std::ranges::find(declared, name) != declared.end()) continue;
    const std::string what = fmt::format("objective \"{}\": unknown quantity \"{}\"", problem.objective.text, name);
    if (const std::string observer = recording ? "" : observer_of(name); !observer.empty()) {
      const bool named = observer == "counters";
      throw UserError(
          fmt::format("{} unless its observer is asked for: observe = [\"{}\"]{}", what, observer,
                      named ? fmt::format(", or [observers] counters = {{ metrics = [\"{}\"] }}", name) : ""),
          problem.objective.place);
    }
    throw UserError(fmt::format("{}{}{}", what, suggestion(name, declared),
                                recording ? "" : "; [metrics] of the problem file makes more"),
                    problem.objective.place);
  }
  for (const PlanSpec& plan : problem.plans)
    for (const PlanStageSpec& stage : plan.stages) {
      if (stage.objective.empty()) continue;
      Problem of_stage = problem;
      of_stage.plans.clear();
      of_stage.objective = {stage.objective, std::nullopt, stage.place};
      validate_objective_quantities(options, of_stage, recording);
    }
}

/// Throws UserError where a metric uses a property that the opened device does not have.
void refuse_unknown_properties(const Problem& problem, const Constants& constants) {
  const auto of_device = [](const auto& entry) { return entry.first.starts_with("device."); };
  if (std::ranges::none_of(constants, of_device)) return;  // the device is unknown, as in a recording
  std::vector<std::string> known;
  for (const auto& [name, value] : constants) known.push_back(name);
  for (const Metric& metric : problem.metrics)
    for (const std::string& name : metric.expression.names())
      if (name.starts_with("device.") && !constants.contains(name))
        throw UserError(fmt::format("metric \"{}\": this device has no property \"{}\"{}", metric.name, name,
                                    suggestion(name, known)),
                        metric.expression.place());
}

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
    const bool there = std::ranges::any_of(known, [&](const Parameter& p) { return p.name == recorded.name; });
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

/// Adds notes about the sources that a GPU would compile.
void note_source_mistakes_of(Target& target) {
  for (const char* backend : {"cuda", "hip", "opencl"}) {
    const auto has_source = [&](const Kernel& kernel) { return has_source_for(kernel, backend); };
    if (!std::ranges::all_of(target.original.kernels, has_source)) continue;
    for (std::string& note : source_notes(target.original, target.constants, backend))
      target.notes.push_back(std::move(note));
    return;
  }
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
  note_source_mistakes_of(target);
  add_problem_notes(target, options);
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

void add_problem_notes(Target& target, const SetupOptions& options) {
  for (std::string& note : unused_parameter_notes(target.original)) target.notes.push_back(std::move(note));
  if (!options.run.verify || options.verifier) return;
  if (std::string note = note_of_outputs(target.original); !note.empty()) target.notes.push_back(std::move(note));
}

void register_target(TargetKind kind) { target_kinds().push_back(kind); }

void build_space(Target& target, const SetupOptions& options) {
  SpaceOptions space;
  space.threads = options.space_threads;
  target.space = std::make_shared<const SearchSpace>(target.problem.build_space(target.constants, space));
  if (target.space->empty()) {
    throw UserError(fmt::format("problem \"{}\" has no valid configuration on {}: {}", target.problem.name,
                                target.device.name, target.space->why_empty()));
  }
  if (std::string note = note_of_default(target.problem, *target.space, target.constants); !note.empty())
    target.notes.push_back(std::move(note));
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
    const auto known = std::ranges::find_if(kinds, same);
    if (known == kinds.end())
      kinds.push_back(part);
    else
      *known += "," + part;
  }
  return kinds;
}

// A whole space on a simulated device, as a recording: what analyses read without a store in between.
Recording record_simulated(const Problem& requested, const std::string& device) {
  if (!device.starts_with("sim:"))
    throw UserError(
        fmt::format("--device {}: only simulated devices (sim:NAME) are analysed without a recording; measure with "
                    "ergotune tune --strategy brute_force, and analyse its store",
                    device));
  SetupOptions options;
  options.run.device = device;
  options.energy = true;
  const Target target = open_target(requested, options);
  const Problem& problem = target.problem;
  const SearchSpace& space = *target.space;
  Recording recording;
  recording.name = problem.name;
  recording.device = target.device.name;
  recording.file = requested.file;
  recording.provenance = Provenance::simulated;
  recording.parameters = space.parameters();
  recording.restrictions = problem.restrictions;
  recording.restrictions_known = true;
  recording.objective = problem.objective;
  recording.metrics = problem.metrics;
  RecordingBuilder rows(space.dimensions());
  std::vector<std::uint32_t> positions(space.dimensions());
  for (ConfigurationIndex index = 0; index < space.size(); ++index) {
    EvaluationRequest request;
    request.index = index;
    request.configuration = space.configuration(index);
    target.evaluator->submit(request);
    Measurement m = target.evaluator->wait(0)->measurement;
    if (m.ok() &&
        broken_code_restriction(problem, space.parameters(), request.configuration, target.constants, m.quantities)) {
      m.status = Status::unsupported;
    } else if (m.ok()) {
      evaluate_metrics(m, problem.metrics, space.parameters(), request.configuration, target.constants);
    }
    rows.set(m);
    space.values_at(index, positions);
    rows.finish_row(positions.data(), m.status, {m.compile_seconds, m.verify_seconds, m.measure_seconds, 0, true});
  }
  rows.finish(recording);
  return recording;
}

}  // namespace ergotune
