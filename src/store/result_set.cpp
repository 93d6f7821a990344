#include "store/result_set.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>

#include "base/json_text.hpp"
#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "store/sqlite/stored_session.hpp"

namespace ergotune {
namespace {

bool is_digit(const std::string& text, std::size_t at) {
  return at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]));
}

/// The message without the parts that differ between configurations.
std::string kind_of(const std::string& message) {
  // Names of temporary files end in random letters: ergotune-host-Xa81kP, and PoCL's tempfile_Xa81kP.cl.
  constexpr std::string_view kScratch[] = {"ergotune-", "tempfile_"};
  std::string kind;
  for (std::size_t i = 0; i < message.size(); ++i) {
    if (is_digit(message, i)) {  // 3, 3.25, 1e-05: one number
      while (is_digit(message, i + 1) || (message.compare(i + 1, 1, ".") == 0 && is_digit(message, i + 2)) ||
             (message.compare(i + 1, 2, "e-") == 0 && is_digit(message, i + 3)) ||
             (message.compare(i + 1, 2, "e+") == 0 && is_digit(message, i + 3)))
        i += message[i + 1] == 'e' ? 2 : 1;
      kind += '#';
    } else if (const auto scratch =
                   std::find_if(std::begin(kScratch), std::end(kScratch),
                                [&](std::string_view name) { return message.compare(i, name.size(), name) == 0; });
               scratch != std::end(kScratch)) {
      i += scratch->size();
      while (std::isalnum(static_cast<unsigned char>(message[i])) || message[i] == '-')
        ++i;  // a string is terminated by a zero, so that i + 1 is readable
      --i;
      kind += *scratch;
    } else {
      kind += message[i];
    }
  }
  return kind;
}

void add_values_met(ResultSet& results) {
  for (std::size_t p = 0; p < results.parameters.size(); ++p) {
    auto& values = results.parameters[p].values;
    const auto known = static_cast<std::ptrdiff_t>(values.size());
    for (const StoredRow& row : results.rows) {
      if (std::ranges::find(values, row.configuration[p]) == values.end()) {
        values.push_back(row.configuration[p]);
      }
    }
    std::sort(values.begin() + known, values.end());
  }
}

/// Replaces line breaks: in a heading, a line break in a name would end the heading.
std::string one_line(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c < 0x20; }, ' ');
  return name;
}

}  // namespace

void FailureGroups::add(std::size_t number, Status status, const std::string& message) {
  const auto [place, added] = place_.try_emplace(to_string(status) + ": " + kind_of(message), groups_.size());
  if (added) groups_.push_back({status, message, 0, number});
  ++groups_[place->second].count;
}

std::vector<FailureGroup> FailureGroups::list() const {
  std::vector<FailureGroup> list = groups_;
  std::ranges::stable_sort(list, [](const FailureGroup& a, const FailureGroup& b) { return a.count > b.count; });
  return list;
}

std::string most_informative_line(std::string_view description) {
  std::string_view first;
  while (!description.empty()) {
    const std::size_t end = std::min(description.find('\n'), description.size());
    const std::string_view line = description.substr(0, end);
    if (line.find("error: ") != line.npos || line.find("Error: ") != line.npos || line.starts_with("error")) {
      first = line;
      break;
    }
    if (first.empty()) first = trimmed(line);
    description.remove_prefix(std::min(end + 1, description.size()));
  }
  return std::string(trimmed(first));
}

ResultSet result_set(const Store& store, std::int64_t session) {
  const SessionInfo info = pick_session(store, session);
  ResultSet results;
  results.problem = results.kernel = one_line(info.problem);
  results.device = results.device_name = results.device_id = one_line(info.device);
  results.goal = info.objective;
  results.provenance = info.provenance;
  results.environment = store.environment(info.id);
  const auto environment = parse_json<nlohmann::json>(results.environment, false);
  if (environment.is_object()) {
    results.device_name = environment.value("device", results.device);
    results.device_id = environment.value("device_id", results.device_name);
    if (const auto space = environment.find("configurations");
        space != environment.end() && space->is_number_unsigned())
      results.space = space->get<std::uint64_t>();
    if (const auto notes = environment.find("notes"); notes != environment.end() && notes->is_array())
      for (const auto& note : *notes)
        if (note.is_string()) results.notes.push_back(note.get<std::string>());
  }
  results.store = store.file();
  results.session = info.id;
  results.size = info.constants;
  results.rows = store.results(info.id);
  std::optional<Problem> problem;
  try {
    problem = stored_problem(store, info.id);
  } catch (const UserError& error) {
    results.warnings.push_back(error.message());
  }
  for (std::string& warning : store.warnings()) results.warnings.push_back(std::move(warning));
  results.parameters = stored_parameters(info, problem);
  if (problem) {
    std::string functions;
    for (const Kernel& kernel : problem->kernels)
      functions += (functions.empty() ? "" : ", ") + (kernel.name.empty() ? kernel.function.text() : kernel.name);
    if (!functions.empty()) results.kernel = functions;
    results.attributes = problem->all_attributes();
    results.constants = problem->constants;
    results.metrics = problem->metrics;
    // For stores without runs, the stored problem holds the objective and its direction.
    if (info.runs == 0) results.goal = problem->objective;
  }
  results.objective = results.goal.text;
  add_values_met(results);
  return results;
}

ResultSet result_set(const Recording& recording) {
  ResultSet results;
  results.problem = results.kernel = one_line(recording.name);
  results.device = results.device_name = results.device_id = one_line(recording.device);
  results.warnings = recording.warnings;
  results.goal = recording.objective;
  results.objective = results.goal.text;
  results.provenance = recording.provenance;
  results.parameters = recording.parameters;
  results.metrics = recording.metrics;
  for (std::size_t row = 0; row < recording.size(); ++row) {
    StoredRow& stored = results.rows.emplace_back();
    stored.id = static_cast<std::int64_t>(row);
    stored.configuration = recording.configuration(row);
    stored.measurement = recording.measurement(row);
    if (const auto found = recording.confirmations.find(row); found != recording.confirmations.end()) {
      stored.confirmed_for = found->second.objective;
      stored.rounds = found->second.repeats;
      stored.certainty = found->second.certainty;
      stored.searched = found->second.searched;
    }
  }
  return results;
}

bool is_default(const std::vector<Parameter>& parameters, const Configuration& configuration) {
  for (std::size_t p = 0; p < parameters.size(); ++p)
    if (configuration[p] != parameters[p].default_or_first()) return false;
  return true;
}

}  // namespace ergotune
