#include "ergotune/session.hpp"
#include "base/text.hpp"

#include <nlohmann/json.hpp>

#include "base/extensions.hpp"
#include "base/json_text.hpp"
#include "base/process/environment.hpp"
#include "problem/tables/setting_table.hpp"
#include "report/result_document.hpp"
#include "search/objective.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {
namespace {

void apply_settings(ProblemFile& problem, const std::map<std::string, std::string>& values) {
  for (const auto& [name, text] : values) {
    const Setting* setting = find_setting(name);
    if (!setting) throw UserError("unknown setting \"" + name + "\"" + suggestion(name, setting_names()));
    const auto parts = setting->is_list() ? split(text) : std::vector<std::string>{text};
    parse_setting(problem.run, *setting, parts, "setting \"" + name + "\"");
  }
  check_settings(problem.run);
  use_objective_of_settings(problem);
}

TunedConfiguration configuration_of(const RankedResults& ranked, std::size_t row) {
  TunedConfiguration out;
  const StoredRow& result = ranked.results.rows[row];
  for (std::size_t p = 0; p < result.configuration.size(); ++p)
    out.configuration[ranked.results.parameters[p].name] = result.configuration[p];
  out.measurement = result.measurement;
  out.objective = ranked.value(row);
  out.confirmation_repeats = result.rounds;
  return out;
}

}  // namespace

TuneResult tune(ProblemFile problem, const TuneOptions& options) {
  register_extensions();
  apply_settings(problem, options.settings);
  SetupOptions setup;
  setup.run = problem.run;
  setup.observers = options.observers;
  setup.interrupted = options.interrupted;
  std::string command = options.command.empty() ? environment_variable("ERGOTUNE_COMMAND") : options.command;
  setup.worker_command = {command.empty() ? "ergotune" : std::move(command), "worker"};
  SessionOptions session = SessionOptions::from(problem.run);
  session.interrupted = options.interrupted;
  if (options.progress)
    session.progress = [&](const SessionProgress& p) {
      options.progress({p.evaluated, p.total, p.seconds, p.best, p.seconds_left});
    };
  PreparedSession prepared = prepare_session(std::move(problem), setup);
  const TunedSession tuned = tune_session(prepared, session);
  const RankedResults& ranked = tuned.ranked;
  TuneResult out;
  for (const std::size_t row : ranked.shown()) out.best.push_back(configuration_of(ranked, row));
  if (ranked.default_row) out.default_result = configuration_of(ranked, *ranked.default_row);
  out.provenance = ranked.results.provenance;
  out.probability_best = ranked.confidence.probability_best;
  out.evaluated = tuned.run.evaluated;
  out.resumed = tuned.run.resumed;
  out.seconds = tuned.run.seconds;
  out.json = json_text(result_document(tuned), 2);
  return out;
}

}  // namespace ergotune
