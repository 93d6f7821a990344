#include "api/exchange.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "api/wisdom_records.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/json_text.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "evaluate/recorded/replay.hpp"
#include "kernel/configure.hpp"
#include "problem/files/source_text.hpp"
#include "problem/program.hpp"
#include "report/ranked_results.hpp"
#include "store/formats/exported_session.hpp"
#include "store/formats/recording.hpp"
#include "store/sqlite/store.hpp"
#include "store/sqlite/stored_session.hpp"

namespace ergotune {
namespace {

struct ImportedSession {
  std::int64_t session = 0;
  std::size_t added = 0;  ///< rows whose configuration was new to the session
};

/// The run of confirmations with these repeats.
std::int64_t confirmation_run(Store& store, std::int64_t session, const ConfirmedRow& confirmation,
                              std::map<int, std::int64_t>& runs) {
  const auto [run, added] = runs.try_emplace(confirmation.repeats);
  if (added) {
    run->second = store.begin_run(session, {.objective = *confirmation.objective, .strategy = "imported"});
    store.set_confirmed(run->second, confirmation.repeats);
    if (confirmation.certainty) store.set_certainty(run->second, *confirmation.certainty);
    store.end_run(run->second, "imported");
  }
  return run->second;
}

/// Importing the same file again adds its new rows, as for a cache file that another tool extends.
ImportedSession import_recording(Store& store, const Recording& recording) {
  const std::string document = serialise(problem_of(recording)), file = recording.file.filename().string();
  SessionKey identity;
  identity.problem = recording.name;
  identity.problem_document = document;
  identity.device = recording.device;
  identity.conditions = "imported from " + file;
  identity.provenance = recording.provenance;
  std::vector<std::string> names;
  for (const Parameter& parameter : recording.parameters) names.push_back(parameter.name);
  const nlohmann::ordered_json environment{{"imported_from", file}, {"imported_at", iso_time(wall_seconds())}};
  ImportedSession imported;
  imported.session = store.session(identity, names, recording.objective.text, json_text(environment), document);
  std::set<Configuration> known;
  for (StoredRow& row : store.rows(imported.session)) known.insert(std::move(row.configuration));
  std::vector<StoredRow> rows;
  std::map<int, std::int64_t> runs;  // of the confirmations, by their repeats
  for (std::size_t row = 0; row < recording.size(); ++row) {
    Configuration configuration = recording.configuration(row);
    if (known.contains(configuration)) continue;
    ++imported.added;
    StoredRow added;
    added.configuration = std::move(configuration);
    if (recording.is_confirmed(row, recording.objective)) {
      const ConfirmedRow& confirmation = recording.confirmations.at(row);
      if (confirmation.searched) {
        added.measurement = *confirmation.searched;
        rows.push_back(added);
      }
      added.kind = RowKind::confirmed;
      added.run = confirmation_run(store, imported.session, confirmation, runs);
    }
    added.measurement = recording.measurement(row);
    rows.push_back(std::move(added));
  }
  store.add_all(imported.session, rows);
  store.flush();
  return imported;
}

using Json = nlohmann::ordered_json;

void add(std::vector<std::string>& to, const std::vector<std::string>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// That nothing outside of Python reads the winner of a Python function; empty for kernels and functions of C.
std::string note_of_callable(const ExportRequest& request) {
  if (!is_store(request.source)) return {};
  const Store store = Store::open(request.source, true);
  for (const SessionInfo& info : store.sessions()) {
    if (request.session != 0 && info.id != request.session) continue;
    const auto problem = stored_problem(store, info.id);
    if (!problem) continue;
    for (const Kernel& kernel : problem->kernels)
      for (const KernelSource& source : kernel.sources)
        if (source.text.starts_with(kPythonCallable))
          return fmt::format(
              "{} is a Python function: the launcher and programs in C cannot run it; in Python, "
              "ergotune.show(\"{}\").best has its configuration by name, and the same tune_callable() with this store "
              "its objects",
              problem->name, request.source.string());
  }
  return {};
}

/// Which point of a Pareto front a header or wisdom takes; empty for other objectives.
std::string note_of_front(const ExportRequest& request) {
  for (const RankedResults& ranked : load_all_ranked(request.source, request.session, request.objective))
    if (ranked.objective.kind() == Objective::Kind::pareto && ranked.best.size() > 1)
      return fmt::format(
          "the objective \"{}\" has a Pareto front of {} points; the best by its first objective is taken: "
          "--objective names one objective to choose by",
          ranked.objective.name(), ranked.best.size());
  return {};
}

/// The parameters of a program that do not reach it through its build, where #defines have no effect on them.
std::string note_of_program(const ExportRequest& request) {
  if (!is_store(request.source) || request.format != "header") return {};
  const Store store = Store::open(request.source, true);
  for (const SessionInfo& info : store.sessions()) {
    if (request.session != 0 && info.id != request.session) continue;
    const auto problem = stored_problem(store, info.id);
    if (!problem || !problem->program) continue;
    std::set<std::string> built;
    const auto add_names = [&](const Template& text) {
      for (std::string& name : text.names()) built.insert(std::move(name));
    };
    for (const auto& step : problem->program->build) std::ranges::for_each(step, add_names);
    for (const ProgramFile& file : problem->program->build_files) add_names(file.text);
    std::vector<std::string> others;
    for (const Parameter& parameter : problem->parameters)
      if (!built.contains(parameter.name)) others.push_back(parameter.name);
    if (!others.empty())
      return fmt::format(
          "the program takes {} from its command line, its environment, its files or the machine, not from its build: "
          "a #define does not set {}; \"ergotune show --json\" prints the best configuration",
          fmt::join(others, ", "), others.size() == 1 ? "it" : "them");
  }
  return {};
}

std::vector<std::string> notes_on_use(const ExportRequest& request) {
  std::vector<std::string> notes;
  for (const std::string& note : {note_of_callable(request), note_of_program(request), note_of_front(request)})
    if (!note.empty()) notes.push_back(note);
  return notes;
}

/// A header contains the best results of all sessions (or of the requested one).
ExportedText header_text(const ExportRequest& request) {
  ExportedText exported;
  std::vector<BestResult> best;
  // Of each device, the session that was worked on last, which `show` chooses too.
  std::map<std::string, Constants> sizes;
  std::string others;
  for (const RankedResults& ranked : load_all_ranked(request.source, request.session, request.objective)) {
    add(exported.warnings, ranked.results.warnings);
    auto entry = ranked.winner();
    if (!entry || (!best.empty() && entry->problem != best.front().problem)) continue;
    const auto [known, added] = sizes.try_emplace(entry->device, ranked.results.size);
    if (added) {
      best.push_back(std::move(*entry));
    } else if (known->second != ranked.results.size) {
      others += fmt::format("{}{} ({})", others.empty() ? "" : ", ", ranked.results.session,
                            values_text(ranked.results.size));
    }
  }
  if (!others.empty())
    exported.warnings.push_back("sessions of other sizes are not in this header; --session exports one: " + others);
  if (best.empty())
    throw UserError("nothing has worked in these results, so there is no best to export",
                    {request.source.string(), 0, 0});
  exported.count = best.size();
  if (const std::string note = note_of_program(request); !note.empty())
    exported.text = fmt::format("/* Note: {} */\n", note);
  exported.text += to_c_header(best);
  return exported;
}

ExportedText wisdom_text(const ExportRequest& request) {
  const auto wisdom = wisdom_of(request.source, request.session, request.objective);
  if (wisdom.size() > 1)
    throw UserError(fmt::format(
        "these results are of {} kernels, and each has a file of its own: name a folder with -o", wisdom.size()));
  return {to_text({wisdom.begin()->first, wisdom.begin()->second, {}}), wisdom.begin()->second.size(),
          notes_of_sources(wisdom)};
}

}  // namespace

const std::vector<std::string>& export_formats() {
  static const std::vector<std::string> formats{"kt", "t4", "csv", "wisdom", "header"};
  return formats;
}

ExportedText export_text(const ExportRequest& request) {
  const auto& known = export_formats();
  if (std::ranges::find(known, request.format) == known.end())
    throw UserError(fmt::format("unknown format \"{}\"{}", request.format, suggestion(request.format, known)));
  if (request.format == "header" || request.format == "wisdom") {
    ExportedText exported = request.format == "header" ? header_text(request) : wisdom_text(request);
    add(exported.warnings, notes_on_use(request));
    return exported;
  }
  ResultSet results = load_results(request.source, request.session);
  if (request.objective) {
    RankedResults ranked = rank_results(std::move(results), request.objective);
    results = std::move(ranked.results);
    results.objective = *request.objective;
    results.goal = ranked.objective.spec();
  }
  ExportedText exported{{}, results.rows.size(), results.warnings};
  const bool any =
      std::ranges::any_of(results.rows, [](const StoredRow& row) { return usable(row.measurement.status); });
  if (any && !exported_objective(results))
    exported.warnings.push_back(
        fmt::format("the file does not state the objective, \"{}\", which is an expression: who reads it ranks by time",
                    results.goal.text));
  exported.text = request.format == "kt"    ? to_kernel_tuner_cache(results)
                  : request.format == "csv" ? to_csv(results)
                                            : to_t4_results(results);
  return exported;
}

Json export_results(const ExportRequest& request, const std::filesystem::path& output,
                    std::vector<std::string>& warnings) {
  if (request.format == "wisdom") {
    Json files = Json::array();
    const auto wisdom = wisdom_of(request.source, request.session, request.objective);
    add(warnings, notes_of_sources(wisdom));
    add(warnings, notes_on_use(request));
    for (const WrittenWisdom& written : write_wisdom(output, wisdom))
      files.push_back({{"file", written.file.string()},
                       {"kernel", written.kernel},
                       {"records", written.records},
                       {"added", written.added}});
    return {{"format", "wisdom"}, {"folder", output.string()}, {"files", std::move(files)}};
  }
  const ExportedText exported = export_text(request);
  add(warnings, exported.warnings);
  write_named_file(output, exported.text);
  return {{"file", output.string()},
          {"format", request.format},
          {request.format == "header" ? "entries" : "rows", exported.count}};
}

Json import_results(const std::filesystem::path& file, const std::filesystem::path& store_file, const std::string& name,
                    const std::string& device) {
  if (is_store(file)) throw UserError("this is a store already; use it as it is", {file.string(), 0, 0});
  Recording recording = load_recording(file);
  if (!name.empty()) recording.name = name;
  if (!device.empty()) recording.device = device;
  Store store = Store::open(store_file);
  const ImportedSession imported = import_recording(store, recording);
  return {{"store", store_file.string()},
          {"session", imported.session},
          {"problem", recording.name},
          {"device", recording.device},
          {"rows", recording.size()},
          {"added", imported.added},
          {"restrictions_known", recording.restrictions_known},
          {"warnings", recording.warnings}};
}

}  // namespace ergotune
