#include "ergotune/session.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/extensions.hpp"
#include "base/process/environment.hpp"
#include "problem/tables/setting_table.hpp"
#include "report/result_document.hpp"
#include "search/known_names.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {
namespace {

void apply_settings(Settings& settings, const std::map<std::string, std::string>& values) {
  for (const auto& [name, text] : values) {
    const Setting* setting = find_setting(name);
    if (!setting) throw UserError("unknown setting \"" + name + "\"" + suggestion(name, setting_names()));
    std::vector<std::string> parts{text};
    if (setting->is_list()) {
      parts.clear();
      std::istringstream stream(text);
      for (std::string part; std::getline(stream, part, ',');) parts.push_back(part);
    }
    parse_setting(settings, *setting, parts, "setting \"" + name + "\"");
  }
  check_settings(settings);
}

TunedConfiguration tuned(const PreparedSession& prepared, const ConfigurationResult& result) {
  TunedConfiguration out;
  const Configuration values = prepared.space->configuration(result.index);
  for (std::size_t p = 0; p < values.size(); ++p) out.configuration[prepared.space->parameters()[p].name] = values[p];
  out.measurement = result.measurement;
  out.objective = prepared.objective->value(result.measurement);
  out.confirmation_repeats = result.rounds;
  return out;
}

}  // namespace

TuneResult tune(Problem problem, const TuneOptions& options) {
  register_extensions();
  apply_settings(problem.settings, options.settings);
  SetupOptions setup = SetupOptions::from(problem);
  setup.observers = options.observers;
  setup.interrupted = options.interrupted;
  std::string command = options.command.empty() ? environment_variable("ERGOTUNE_COMMAND") : options.command;
  setup.live.worker_command = {command.empty() ? "ergotune" : std::move(command), "worker"};
  SessionOptions session = SessionOptions::from(problem.settings);
  session.interrupted = options.interrupted;
  if (options.progress)
    session.progress = [&](const SessionProgress& p) {
      options.progress({p.evaluated, p.total, p.seconds, p.best, p.seconds_left});
    };
  PreparedSession prepared = prepare_session(std::move(problem), setup);
  const SessionResult result = run_session(prepared, session);
  TuneResult out;
  for (const ConfigurationResult& best : result.best) out.best.push_back(tuned(prepared, best));
  if (result.default_result) out.default_result = tuned(prepared, *result.default_result);
  out.provenance = prepared.evaluator->provenance();
  out.probability_best = result.probability_best;
  out.evaluated = result.evaluated;
  out.resumed = result.resumed;
  out.seconds = result.seconds;
  out.json = result_document(prepared, result).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return out;
}

}  // namespace ergotune
