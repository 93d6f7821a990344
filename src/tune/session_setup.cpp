#include "ergotune/tune/session_setup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "ergotune/base/clock.hpp"
#include "ergotune/base/error.hpp"
#include "ergotune/evaluate/controlled.hpp"
#include "ergotune/evaluate/replay.hpp"
#include "ergotune/evaluate/simulated.hpp"
#include "ergotune/power/guardian.hpp"
#include "ergotune/problem/load.hpp"
#include "ergotune/problem/quantity.hpp"
#include "measure/configure.hpp"
#include "problem/macro_clashes.hpp"

namespace ergotune {
namespace {

/// Quantities that only a sensor or the board's monitor can give.
bool needs_sensor(const Objective& objective) {
  return std::ranges::any_of(quantities(), [&](const QuantityInfo& quantity) {
    return quantity.needs_sensor() && objective.needs(std::string(quantity.name));
  });
}

/// The problem without what cannot change a configuration's result, and without where its files lie.
std::string identity_document(Problem problem) {
  problem.defaults = {};
  problem.objective = {};
  problem.metrics.clear();
  problem.plans.clear();
  problem.description.clear();
  problem.file.clear();
  const auto forget_place = [](Kernel& kernel) {
    for (KernelSource& source : kernel.sources) {
      source.file = source.file.filename();
      source.include_folders.clear();
    }
  };
  forget_place(problem.kernel());
  if (problem.verification.reference) {
    auto reference = std::make_shared<Kernel>(*problem.verification.reference);
    forget_place(*reference);
    problem.verification.reference = reference;
  }
  return serialise(problem);
}

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return {};
}

std::string environment(const PreparedSession& prepared, const std::string& compiler) {
  utsname system{};
  ::uname(&system);
  const nlohmann::ordered_json document{
      {"device", prepared.device.name},
      {"device_id", prepared.device.id},
      {"uuid", prepared.device.uuid},
      {"driver", prepared.device.driver_version},
      {"compiler", compiler},
      {"host_processor", cpu_name()},
      {"host_cores", std::thread::hardware_concurrency()},
      {"system", fmt::format("{} {}", system.sysname, system.release)},
      {"configurations", prepared.space->size()},
      {"begun_at", iso_time(wall_seconds())},
  };
  return document.dump();
}

std::string conditions_of(const SetupOptions& options, const LiveOptions& live, const Problem& problem) {
  const MeasureOptions& m = live.measure;
  std::string text =
      fmt::format("precision {:g}, repeats {}-{}, warm-up {}, {} cache, cap {:g} s", m.precision,
                  m.min_repeats, m.max_repeats, m.warm_up, m.cold_cache ? "cold" : "hot", m.max_seconds);
  if (live.energy) {
    text +=
        fmt::format(", energy by {}", live.sensors.empty() ? "the device's own sensor"
                                                           : fmt::format("{}", fmt::join(live.sensors, " ")));
    if (live.energy_seconds > 0) text += fmt::format(" for {:g} s", live.energy_seconds);
  }
  if (!m.verify) text += ", not verified";
  if (const std::string included = hash_of_included_files(problem); !included.empty())
    text += ", includes " + included;
  if (!options.controls.empty()) text += fmt::format(", controls {}", fmt::join(options.controls, " "));
  return text;
}

void open_store(PreparedSession& prepared, const SetupOptions& options, const Problem& original,
                const std::string& device_identity, const std::string& compiler, std::string conditions) {
  if (options.store.empty()) return;
  prepared.store = std::make_unique<Store>(Store::open(options.store));
  SessionIdentity identity;
  identity.problem = original.name;
  identity.problem_document = identity_document(original);
  identity.device = fmt::format("{} ({})", prepared.device.name, prepared.device.id);
  identity.device_identity = device_identity;
  identity.provenance = prepared.evaluator->provenance();
  if (!options.resume) conditions += fmt::format(", begun afresh {:.6f}", wall_seconds());
  identity.conditions = std::move(conditions);
  std::vector<std::string> names;
  for (const Parameter& parameter : prepared.space->parameters()) names.push_back(parameter.name);
  prepared.store_session =
      prepared.store->session(identity, names, prepared.objective->name(), environment(prepared, compiler),
                              serialise(prepared.problem));
}

void build_space(PreparedSession& prepared) {
  prepared.space = std::make_shared<const SearchSpace>(prepared.problem.build_space(prepared.constants));
  if (prepared.space->empty()) {
    throw UserError(fmt::format("problem \"{}\" has no valid configuration on {}: {}", prepared.problem.name,
                                prepared.device.name, prepared.space->why_empty()));
  }
}

void prepare_replay(PreparedSession& prepared, const std::string& file) {
  prepared.device.id = "replay:" + file;
  prepared.device.backend = "replay";
  const auto recording = std::make_shared<const Recording>(load_recording(file));
  prepared.device.name = recording->device.empty() ? "recorded device" : recording->device;
  prepared.constants = prepared.problem.constants_for(prepared.device.name, {});
  // Execution parameters have the values that were recorded.
  for (const Parameter& recorded : recording->parameters) {
    if (recorded.kind == ParameterKind::code) continue;
    const auto& known = prepared.problem.parameters;
    const bool there =
        std::any_of(known.begin(), known.end(), [&](const Parameter& p) { return p.name == recorded.name; });
    if (!there) prepared.problem.parameters.push_back(recorded);
  }
  prepared.problem.execution_parameters.clear();
  // The recording is the device: what it holds is what can be "run". A problem whose restrictions need a
  // device's properties is searched over the recorded configurations.
  try {
    build_space(prepared);
  } catch (const UserError&) {
    prepared.space = std::make_shared<const SearchSpace>(space_of(*recording));
  }
  prepared.evaluator = make_replay(recording, *prepared.space);
  for (const std::string& warning : recording->warnings) prepared.notes.push_back(warning);
}

void prepare_simulated(PreparedSession& prepared, const std::string& name, const SetupOptions& options) {
  const DeviceProfile profile = load_device_profile(name);
  prepared.device.id = "sim:" + name;
  prepared.device.backend = "simulated";
  prepared.device.name = "simulated " + profile.name;
  prepared.device.properties = profile.properties;
  resolve_execution_parameters(prepared.problem, profile, options.suggested);
  prepared.constants = prepared.problem.constants_for(profile.name, profile.properties);
  build_space(prepared);
  SimulationOptions simulation;
  simulation.seed = options.simulation_seed;
  prepared.evaluator = make_simulated(profile, prepared.problem, *prepared.space, simulation);
  prepared.notes.push_back("every number below is simulated, nothing is measured");
}

/// The control that sets the execution parameters; null when there is none that may be used: then they are
/// left out.
std::unique_ptr<Control> find_control(PreparedSession& prepared, const SetupOptions& options) {
  if (prepared.problem.execution_parameters.empty()) return nullptr;
  std::string why_not;
  std::unique_ptr<Control> control;
  if (options.controls.size() > 1) throw UserError("one device takes one --control");
  if (!options.controls.empty()) {
    control = usable_control(options.controls.front(), &why_not);
  } else {
    control = control_for_device(prepared.device.uuid, prepared.device.pci_address, prepared.device.is_cpu,
                                 &why_not);
  }
  if (!control) {
    prepared.notes.push_back("clocks and limits are left as they are: " + why_not);
    prepared.problem.execution_parameters.clear();
  }
  return control;
}

void prepare_live(PreparedSession& prepared, const SetupOptions& options) {
  // Clocks that a killed session left behind would spoil every measurement.
  for (const RestoreReport& report : replay_stale_journals()) prepared.notes.push_back(report.summary);
  const Problem original = prepared.problem;
  LiveOptions live = options.live;
  live.device = options.device;
  live.energy = live.energy || !live.sensors.empty() || needs_sensor(*prepared.objective);
  std::unique_ptr<Evaluator> evaluator;
  LiveDevice* device = nullptr;
  if (options.in_process) {
    auto in_process = std::make_unique<InProcessEvaluator>(prepared.problem, live);
    prepared.runner = &in_process->runner();
    device = in_process.get();
    evaluator = std::move(in_process);
  } else {
    auto workers = std::make_unique<LiveEvaluator>(prepared.problem, live);
    device = workers.get();
    evaluator = std::move(workers);
  }
  prepared.device = device->device();
  prepared.constants = prepared.problem.constants_for(prepared.device.name, prepared.device.properties);
  for (const std::string& note : device->notes()) prepared.notes.push_back(note);
  std::vector<const KernelSource*> sources{&source_for_device(original.kernel(), prepared.device.backend)};
  if (const auto& reference = original.verification.reference;
      reference && has_source_for(*reference, prepared.device.backend))
    sources.push_back(&source_for_device(*reference, prepared.device.backend));
  for (const std::string& note : macro_clash_notes(original, prepared.constants, sources))
    prepared.notes.push_back(note);

  std::unique_ptr<Control> control = find_control(prepared, options);
  if (control) {
    for (Parameter& parameter :
         make_execution_parameters(prepared.problem.execution_parameters, *control, options.suggested)) {
      prepared.problem.parameters.push_back(std::move(parameter));
    }
    prepared.problem.execution_parameters.clear();
  }
  build_space(prepared);
  prepared.evaluator = std::move(evaluator);
  const std::string device_identity =
      fmt::format("{} | {} | {}", prepared.device.uuid.empty() ? prepared.device.name : prepared.device.uuid,
                  prepared.device.driver_version, device->compiler_identity());
  open_store(prepared, options, original, device_identity, device->compiler_identity(),
             conditions_of(options, live, original));

  // Where outputs are compared with the first correct configuration's, a resumed session takes one that is
  // known to be right, the default if it can.
  if (prepared.store && live.measure.verify &&
      original.verification.kind == Verification::Kind::first_correct) {
    std::vector<Configuration> candidates;
    const auto default_index = default_of(*prepared.space);
    for (const StoredRow& row : prepared.store->rows(prepared.store_session)) {
      if (!usable(row.measurement.status)) continue;
      const auto index = prepared.space->index_of(row.configuration);
      if (!index) continue;
      candidates.push_back(row.configuration);
      if (index == default_index) std::swap(candidates.front(), candidates.back());
    }
    if (candidates.size() > 5) candidates.resize(5);
    if (!candidates.empty()) device->establish_reference(candidates);
  }
  if (control) {
    ControlSessionOptions control_options;
    control_options.take_over = options.take_over;
    auto session = ControlSession::open(std::move(control), control_options);
    for (const std::string& note : session->notes()) prepared.notes.push_back(note);
    prepared.evaluator = make_controlled_evaluator(std::move(prepared.evaluator), std::move(session),
                                                   prepared.space->parameters());
  }
}

}  // namespace

SetupOptions SetupOptions::from(const Problem& problem) {
  SetupOptions options;
  const TuneDefaults& defaults = problem.defaults;
  if (defaults.device) options.device = *defaults.device;
  if (defaults.store) options.store = *defaults.store;
  options.controls = defaults.controls;
  options.live = LiveOptions::from(defaults);
  return options;
}

PreparedSession prepare_session(Problem problem, const SetupOptions& options) {
  PreparedSession prepared;
  prepared.problem = std::move(problem);
  prepared.objective =
      std::make_unique<Objective>(Objective::parse(prepared.problem.objective, prepared.problem.metrics));
  const Problem original = prepared.problem;
  if (options.device.starts_with("replay:")) {
    prepare_replay(prepared, options.device.substr(7));
    open_store(prepared, options, original, prepared.device.id, {}, prepared.evaluator->description());
  } else if (options.device.starts_with("sim:")) {
    prepare_simulated(prepared, options.device.substr(4), options);
    open_store(prepared, options, original, prepared.device.id, {},
               fmt::format("{}, seed {}", prepared.evaluator->description(), options.simulation_seed));
  } else {
    prepare_live(prepared, options);
  }
  return prepared;
}

SessionResult run_session(PreparedSession& prepared, SessionOptions options) {
  if (prepared.evaluator->provenance() == Provenance::measured) {
    options.problem = &prepared.problem;
    options.constants = prepared.constants;
  }
  return run_session(*prepared.space, *prepared.objective, *prepared.evaluator, prepared.store.get(),
                     prepared.store_session, options);
}

}  // namespace ergotune
