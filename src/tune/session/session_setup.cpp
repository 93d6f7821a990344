#include "tune/session/session_setup.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>
#include <utility>

#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "kernel/macro_clashes.hpp"
#include "measure/metrics.hpp"
#include "problem/document/problem_document.hpp"
#include "problem/draft/problem_draft.hpp"
#include "search/models/prior.hpp"
#include "store/formats/json_values.hpp"
#include "store/sqlite/stored_session.hpp"
#include "tune/ledger/live_session.hpp"
#include "tune/session/device_lock.hpp"
#include "tune/session/session_changes.hpp"

namespace ergotune {
namespace {

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.size(), line.find(':') + 2));
  }
  return {};
}

/// Describes the GPUs if there are several.
nlohmann::ordered_json gpus_of(const PreparedSession& prepared) {
  auto list = nlohmann::ordered_json::array();
  for (const DeviceShare& gpu : prepared.evaluator->gpus())
    list.push_back({{"device", gpu.gpu}, {"id", gpu.id}, {"name", gpu.name}});
  return list;
}

/// The configurations of a space that functions of a program restrict, which no store holds; null where they are many.
nlohmann::ordered_json listed_space(const PreparedSession& prepared) {
  constexpr std::uint64_t kMost = 10000;
  const Problem& problem = prepared.problem;
  const bool functions =
      std::ranges::any_of(problem.restrictions, [](const auto& r) { return static_cast<bool>(r.function); }) ||
      std::ranges::any_of(problem.parameters, [](const auto& p) { return static_cast<bool>(p.generator); });
  if (!functions || prepared.space->size() > kMost) return nullptr;
  auto list = nlohmann::ordered_json::array();
  for (ConfigurationIndex i = 0; i < prepared.space->size(); ++i) {
    auto& row = list.emplace_back(nlohmann::ordered_json::array());
    for (const Value& value : prepared.space->configuration(i)) row.push_back(value_json(value));
  }
  return list;
}

std::string environment(const PreparedSession& prepared, const std::string& compiler) {
  utsname system{};
  ::uname(&system);
  nlohmann::ordered_json properties = nlohmann::ordered_json::object();
  for (const auto& [name, value] : prepared.device.properties)
    std::visit([&, key = name](const auto& plain) { properties[key] = plain; }, value.data());
  nlohmann::ordered_json document{
      {"device", prepared.device.name},
      {"device_id", prepared.device.id},
      {"backend", prepared.device.backend},
      {"uuid", prepared.device.uuid},
      {"devices", gpus_of(prepared)},
      {"driver", prepared.device.driver_version},
      {"compiler", compiler},
      {"host_processor", cpu_name()},
      {"host_cores", std::thread::hardware_concurrency()},
      {"system", fmt::format("{} {}", system.sysname, system.release)},
      {"host", system.nodename},
      {"properties", properties},
      {"configurations", prepared.space->size()},
      {"begun_at", iso_time(wall_seconds())},
  };
  if (auto listed = listed_space(prepared); !listed.is_null()) document["valid_configurations"] = std::move(listed);
  if (const auto notes = unused_parameter_notes(prepared.original); !notes.empty()) document["notes"] = notes;
  return json_text(document);
}

/// Replaces arrays given in memory by their hash, for the problem stored for readers.
Problem without_arrays(Problem problem) {
  for (Kernel& kernel : problem.kernels)
    for (Argument& argument : kernel.arguments) {
      argument.fill.data.reset();
      argument.fill.foreign.reset();
    }
  return problem;
}

/// The constants in which the problem differs from a stored session's: "ROWS=1024, COLS=64".
std::string size_beside(const PreparedSession& prepared, std::int64_t session) {
  const auto stored = stored_problem(*prepared.store, session);
  std::string text;
  for (const auto& [name, value] : prepared.original.constants) {
    const auto other = stored ? stored->constants.find(name) : prepared.original.constants.end();
    if (stored && other != stored->constants.end() && other->second != value)
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, value.to_string());
  }
  return text;
}

/// Which results of this problem on this device a new session does not use, and why; empty if there are none.
std::string note_of_other_results(const PreparedSession& prepared, const std::vector<SessionInfo>& sessions,
                                  const SessionKey& key, bool prior) {
  const auto closeness = [&](const SessionInfo& info) {
    return std::tuple(info.device_identity == key.device_identity, size_beside(prepared, info.id).empty(),
                      info.worked_at);
  };
  const SessionInfo* last = nullptr;
  for (const SessionInfo& info : sessions)
    if (info.problem == key.problem && info.device == key.device && info.rows > 0 &&
        (!last || closeness(info) > closeness(*last)))
      last = &info;
  if (!last) return {};
  if (const std::string size = size_beside(prepared, last->id); !size.empty())
    return prior ? fmt::format("next size: {} (starts from session {})", size, last->id)
                 : fmt::format("a new session begins: {}; session {} has another size (--prior auto starts from it)",
                               size, last->id);
  const auto only_in = [](const std::string& one, const std::string& other) {
    const std::vector<std::string> others = split(other);
    std::vector<std::string_view> parts;
    const std::vector<std::string> own = split(one);
    for (const std::string& part : own)
      if (std::ranges::find(others, part) == others.end()) parts.push_back(trimmed(part));
    return fmt::format("{}", fmt::join(parts, ", "));
  };
  const std::string unused =
      fmt::format("a new session begins, and the results of session {} ({} configurations) are not used: ", last->id,
                  prepared.store->configurations(last->id));
  const std::string theirs = only_in(last->conditions, key.conditions),
                    ours = only_in(key.conditions, last->conditions);
  const bool other_settings = !theirs.empty() || !ours.empty();
  std::string changes =
      other_settings ? fmt::format("it was measured with other settings ({}; now {})",
                                   theirs.empty() ? "the defaults" : theirs, ours.empty() ? "the defaults" : ours)
                     : device_changes(last->device_identity, key.device_identity);
  if (changes.empty() || other_settings) {
    const auto stored = stored_problem(*prepared.store, last->id);
    const std::string problem = stored ? problem_changes(*stored, without_arrays(prepared.problem)) : std::string();
    if (!problem.empty())
      changes += (changes.empty() ? "" : "; ") + ("changed since: " + problem);
    else if (changes.empty())
      changes = "a file that the problem reads (an included header, data), or [execution], has changed since";
  }
  if (other_settings) return unused + changes;
  return unused + changes + (prior ? "" : " (--prior auto starts from it)");
}

/// Keeps in `problem` the contents of arguments that the session was begun with, which are no part of the identity.
/// Whether they were others.
bool keep_contents(Problem& problem, const Store& store, const std::vector<SessionInfo>& sessions,
                   const std::string& hash) {
  const auto session = std::ranges::find(sessions, hash, &SessionInfo::identity_hash);
  if (problem.input_contents.empty() || session == sessions.end()) return false;
  const auto stored = stored_problem(store, session->id);
  if (!stored || stored->input_contents.empty()) return false;
  return std::exchange(problem.input_contents, stored->input_contents) != stored->input_contents;
}

/// `begun`: when the session was, s since the epoch.
void open_store(PreparedSession& prepared, const SetupOptions& options, double begun) {
  if (options.run.store.empty()) return;
  prepared.store = std::make_unique<Store>(Store::open(options.run.store));
  SessionKey identity;
  identity.problem = prepared.original.name;
  identity.problem_document = identity_of(prepared.original);
  identity.device = fmt::format("{} ({})", prepared.device.name, prepared.device.id);
  identity.device_identity = prepared.identity;
  identity.provenance = prepared.evaluator->provenance();
  identity.conditions = prepared.conditions;
  if (!options.resume) identity.conditions += fmt::format(", begun afresh {:.6f}", begun);
  std::vector<std::string> names;
  for (const Parameter& parameter : prepared.space->parameters()) names.push_back(parameter.name);
  const std::string compiler = prepared.live ? prepared.live->compiler_identity() : std::string();
  const std::vector<SessionInfo> before = prepared.store->sessions();
  Problem kept = without_arrays(prepared.problem);
  const bool other_contents = keep_contents(kept, *prepared.store, before, identity.hash());
  prepared.store_session = prepared.store->session(identity, names, prepared.objective->name(),
                                                   environment(prepared, compiler), serialise(kept));
  const bool resumed =
      std::ranges::any_of(before, [&](const SessionInfo& info) { return info.id == prepared.store_session; });
  if (other_contents)
    prepared.notes.insert(prepared.notes.begin(),
                          "the arguments hold other contents than in the session that is continued, whose results are "
                          "of those: version= begins a new one");
  if (resumed || !options.resume) return;
  if (std::string note =
          note_of_other_results(prepared, before, identity, std::ranges::count(options.run.prior, "auto") > 0);
      !note.empty())
    prepared.notes.insert(prepared.notes.begin(), std::move(note));
}

// If outputs are compared with those of the first correct configuration, a resumed session uses one that is known to be
// correct, the default if possible.
void establish_reference(PreparedSession& prepared, const SetupOptions& options) {
  if (!prepared.store || !prepared.live || !options.run.verify ||
      prepared.original.verification.kind != Verification::Kind::first_correct)
    return;
  std::vector<Configuration> candidates;
  const auto default_index = prepared.space->default_configuration();
  for (const StoredRow& row : prepared.store->results(prepared.store_session)) {
    if (!usable(row.measurement.status)) continue;
    const auto index = prepared.space->index_of(row.configuration);
    if (!index) continue;
    candidates.push_back(row.configuration);
    if (index == default_index) std::swap(candidates.front(), candidates.back());
  }
  if (candidates.size() > 5) candidates.resize(5);
  if (!candidates.empty()) prepared.live->establish_reference(candidates);
}

}  // namespace

SessionOptions SessionOptions::from(const RunConfig& settings) {
  // Reported before anything is compiled.
  std::vector<std::string> names;
  for (const StrategyDescription& description : strategies()) names.push_back(description.name);
  if (std::ranges::find(names, settings.strategy) == names.end())
    throw UserError(fmt::format("no strategy \"{}\"{}", settings.strategy, suggestion(settings.strategy, names)));
  SessionOptions options;
  options.strategy = settings.strategy;
  options.strategy_options = settings.strategy_options;
  if (!settings.budget.empty()) options.budget = Budget::parse(settings.budget);
  options.seed = settings.seed;
  options.confirm = settings.confirm;
  options.early_stop = settings.early_stop;
  options.prior = settings.prior;
  options.reference_every = settings.reference_every;
  return options;
}

namespace {

PreparedSession prepare_begun(Problem problem, const SetupOptions& options, double begun) {
  PreparedSession prepared;
  prepared.with_clocks = [problem, options, begun](const std::vector<double>& clocks) {
    SetupOptions own = options;
    own.suggested[ParameterKind::core_clock_mhz] = clocks;
    return prepare_begun(problem, own, begun);
  };
  // An invalid objective is reported before a device is opened.
  prepared.objective = std::make_unique<Objective>(objective_of(problem, options.further_metrics));
  prepared.watched =
      std::make_shared<LiveSession>(options.run.store);  // before workers start, which show what they read
  static_cast<Target&>(prepared) = open_target(std::move(problem), options);
  prepared.announce = options.announce;
  if (std::string note = note_of_guesses(prepared.original.file); !note.empty())
    prepared.notes.insert(prepared.notes.begin(), std::move(note));
  open_store(prepared, options, begun);
  establish_reference(prepared, options);
  prepared.watched->describe(prepared.store_session, prepared.live && prepared.device.is_cpu, prepared.notes);
  const bool several_nodes = !options.run.node_commands.empty() || !options.run.nodes.empty();
  if (!prepared.device_model || several_nodes) prepared.with_clocks = nullptr;
  return prepared;
}

}  // namespace

PreparedSession prepare_session(Problem problem, const SetupOptions& options) {
  const double began = host_seconds();
  PreparedSession prepared = prepare_begun(std::move(problem), options, wall_seconds());
  prepared.preparing = host_seconds() - began;
  return prepared;
}

void PreparedSession::close() {
  live = nullptr;
  evaluator.reset();
  device_lock.reset();
  store.reset();
  watched.reset();
}

std::unique_ptr<Ledger> PreparedSession::open_ledger(
    const std::set<Status>& retry, const std::atomic<bool>* interrupted,
    std::function<void(Measurement&, const Configuration&)> further_metrics) {
  LedgerOptions options;
  options.store = store.get();
  options.session = store_session;
  options.problem = &problem;
  options.constants = constants;
  options.retry = retry;
  options.interrupted = interrupted;
  options.live = watched;
  options.known = known;
  options.further_metrics = std::move(further_metrics);
  auto ledger = std::make_unique<Ledger>(*space, *evaluator, std::move(options));
  if (store && announce)
    for (const std::string& warning : store->warnings())
      announce(fmt::format("{}: {}", store->file().string(), warning));
  // After the ledger holds the session, so that another process requesting it fails at once.
  if (live && !device_lock) {
    const double began = host_seconds();
    device_lock = wait_for_locks(live->devices(), announce, interrupted);
    waited += host_seconds() - began;
  }
  return ledger;
}

SessionResult run_session(PreparedSession& prepared, Ledger& ledger, const SessionOptions& options) {
  RunInfo info;
  info.objective = prepared.objective->spec();
  info.strategy = options.strategy;
  info.seed = options.seed;
  info.phase = "searching";
  SessionOptions own = options;
  own.problem = &prepared.problem;
  own.constants = prepared.constants;
  // Once: an application may search a prepared session again. Some time is left to measure in any case.
  own.spent_seconds = std::min(std::exchange(prepared.preparing, 0), own.budget.seconds / 2);
  if (!own.prior.empty()) own.priors = find_priors(prepared, own.prior);
  ledger.begin_run(info);
  SessionResult result = run_session(ledger, *prepared.space, *prepared.objective, own);
  result.waited = std::exchange(prepared.waited, 0);
  ledger.end_run(result.stopped_because);
  return result;
}

// Finds earlier results of the same problem as a prior for a search.
namespace {

/// Sessions of one store that count at most: the latest.
constexpr std::size_t kSessions = 8;

PriorResults results_of(const PreparedSession& prepared, const Recording& recording) {
  const auto complete = [&](Measurement& measurement, const Configuration& configuration) {
    if (usable(measurement.status))
      evaluate_metrics(measurement, prepared.problem.metrics, prepared.space->parameters(), configuration,
                       prepared.constants);
  };
  PriorResults prior = prior_results(recording, *prepared.space, *prepared.objective, complete);
  if (usable_outcomes(prior) > 0 || prepared.objective->kind() == Objective::Kind::pareto) return prior;
  // Less time is mostly less energy: with a constant power, what lacks energy still shows where to begin.
  const auto at_one_watt = [&](Measurement& measurement, const Configuration& configuration) {
    if (measurement.value("time")) measurement.quantities.emplace("energy", measurement.quantities.at("time"));
    complete(measurement, configuration);
  };
  PriorResults by_time = prior_results(recording, *prepared.space, *prepared.objective, at_one_watt);
  by_time.name += ", by time";
  return usable_outcomes(by_time) > 0 ? by_time : prior;
}

/// The sessions of this problem in a store, the latest first, without the one that is being worked on.
std::vector<std::int64_t> sessions_of(const PreparedSession& prepared, const std::filesystem::path& file) {
  const bool own = prepared.store && std::filesystem::equivalent(file, prepared.store->file());
  std::vector<SessionInfo> sessions = Store::open(file, true).sessions();
  std::ranges::sort(sessions, [](auto& a, auto& b) { return a.worked_at > b.worked_at; });
  std::vector<std::int64_t> found;
  for (const SessionInfo& session : sessions)
    if (!(own && session.id == prepared.store_session) && session.problem == prepared.original.name && session.rows > 0)
      found.push_back(session.id);
  return found;
}

}  // namespace

std::vector<PriorResults> find_priors(const PreparedSession& prepared, const std::vector<std::string>& names) {
  std::vector<PriorResults> priors;
  for (const std::string& name : names) {
    const bool any = name == "auto";
    if (any && !prepared.store) continue;
    const std::filesystem::path file = any ? prepared.store->file() : std::filesystem::path(name);
    if (!std::filesystem::exists(file))
      throw UserError(fmt::format("--prior {}: no such file (a recording, a store, or auto)", name));
    const bool stored = is_store(file);
    const std::size_t before = priors.size();
    PriorResults last;
    for (const std::int64_t session : stored ? sessions_of(prepared, file) : std::vector<std::int64_t>{0}) {
      if (priors.size() - before == kSessions) break;
      Recording recording = load_recording(file, session);
      if (stored) recording.file = fmt::format("session {}", session);  // its name in messages
      last = results_of(prepared, recording);
      if (usable_outcomes(last) > 0) priors.push_back(last);
    }
    if (any || priors.size() > before) continue;
    if (stored)
      throw UserError(fmt::format("--prior {}: no session of {} in this store has {} for configurations of this space",
                                  name, prepared.original.name, prepared.objective->title()));
    throw UserError(fmt::format("--prior {}: of its results {} are of this space, {} of them with a {}", name,
                                last.outcomes.size(), usable_outcomes(last), prepared.objective->title()));
  }
  return priors;
}

}  // namespace ergotune
