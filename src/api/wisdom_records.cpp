#include "api/wisdom_records.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/clock.hpp"
#include "base/json_text.hpp"
#include "base/statistics.hpp"
#include "device/device.hpp"
#include "ergotune/error.hpp"
#include "kernel/wisdom_key.hpp"
#include "report/ranked_results.hpp"
#include "store/sqlite/stored_session.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

std::string text_in(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
}

/// The session's device. Sessions of older versions contain only its name.
WisdomDevice device_of(const ResultSet& results) {
  const auto environment = parse_json<Json>(results.environment, false);
  std::string name = text_in(environment, "device"), backend = text_in(environment, "backend");
  const std::string id = text_in(environment, "device_id");
  if (backend.empty()) backend = id.substr(0, id.find(':'));
  if (name.empty()) name = results.device;
  Constants properties;
  if (environment.is_object() && environment.contains("properties"))
    for (const auto& [key, value] : environment["properties"].items()) {
      if (value.is_number_integer()) properties[key] = value.get<std::int64_t>();
      if (value.is_string()) properties[key] = value.get<std::string>();
    }
  WisdomDevice device = wisdom_device(name, backend, properties);
  device.uuid = text_in(environment, "uuid");
  device.driver = text_in(environment, "driver");
  return device;
}

std::string provenance_of(const Measurement& m) {
  for (const auto& [name, quantity] : m.quantities)
    if (quantity.provenance != Provenance::measured) return to_string(quantity.provenance);
  return to_string(Provenance::measured);
}

/// A record without the fields that depend on the kernel; nullopt if no configuration worked.
std::optional<WisdomRecord> record_of(const RankedResults& ranked) {
  if (ranked.best.empty()) return std::nullopt;
  const ResultSet& results = ranked.results;
  const StoredRow& row = results.rows[ranked.best.front()];
  WisdomRecord record;
  record.device = device_of(results);
  record.objective = ranked.objective.spec().text;
  record.maximise = ranked.objective.direction() == Direction::maximise;
  if (ranked.objective.kind() != Objective::Kind::pareto) record.score = ranked.objective.value(row.measurement);
  for (const auto& [name, q] : row.measurement.quantities) record.quantities[name] = {q.value, q.standard_error, q.n};
  for (const auto& [name, value] : row.measurement.metrics)
    record.quantities[name] = {value, row.measurement.standard_error(name), 0};
  if (const auto gain = ranked.gain_over_default(); gain && gain->half_width > 0)
    record.quantities[kGainOverDefault] = {gain->factor, gain->half_width / half_width_95(1, 0), 0};
  record.provenance = provenance_of(row.measurement);
  mark_simulated(record);
  record.confirmation_repeats = row.rounds;
  record.version = ERGOTUNE_VERSION;
  const auto environment = parse_json<Json>(results.environment, false);
  record.compiler = text_in(environment, "compiler");
  record.host = text_in(environment, "host");
  if (row.measurement.finished_at > 0) record.tuned_at = iso_time(row.measurement.finished_at);
  return record;
}

/// Adds the values that `kernel` uses: its own parameters' and those shared by all kernels.
void add_values(WisdomRecord& record, const ResultSet& results, const Configuration& values, const Kernel* kernel) {
  for (std::size_t p = 0; p < results.parameters.size(); ++p) {
    const Parameter& parameter = results.parameters[p];
    const auto dot = parameter.name.find('.');
    if (kernel && dot != std::string::npos && parameter.name.substr(0, dot) != kernel->name) continue;
    (parameter.kind == ParameterKind::code ? record.configuration : record.execution)[parameter.name] = values[p];
  }
}

void add_session(const RankedResults& ranked, const std::optional<Problem>& problem,
                 std::map<std::string, std::vector<WisdomRecord>>& wisdom) {
  const std::optional<WisdomRecord> known = record_of(ranked);
  if (!known) return;
  const Configuration& values = ranked.results.rows[ranked.best.front()].configuration;
  if (!problem) {
    WisdomRecord record = *known;
    add_values(record, ranked.results, values, nullptr);
    wisdom[ranked.results.kernel].push_back(std::move(record));
    return;
  }
  const Constants constants = problem->constants_for(known->device.name, {});
  for (const Kernel& kernel : problem->kernels) {
    WisdomRecord record = *known;
    add_values(record, ranked.results, values, &kernel);
    record.of_round = problem->kernels.size() > 1;
    record.size_names = size_names(*problem, kernel);
    record.problem_size = problem_size(*problem, kernel, constants);
    const std::string backend = source_backend(kernel, record.device.backend);
    if (!backend.empty()) record.source_hash = source_hash(*problem, kernel, backend, constants);
    record.space_hash = space_hash(*problem);
    wisdom[wisdom_name(*problem, kernel)].push_back(std::move(record));
  }
}

}  // namespace

std::map<std::string, std::vector<WisdomRecord>> wisdom_of(const std::filesystem::path& results, std::int64_t session,
                                                           const std::optional<std::string>& objective) {
  std::map<std::string, std::vector<WisdomRecord>> wisdom;
  if (is_store(results)) {
    const Store store = Store::open(results, true);
    std::vector<SessionInfo> sessions = store.sessions();
    std::ranges::stable_sort(sessions, {}, &SessionInfo::worked_at);
    for (const SessionInfo& info : sessions) {
      if (session != 0 && info.id != session) continue;
      add_session(rank_results(result_set(store, info.id), objective), stored_problem(store, info.id), wisdom);
    }
    if (session != 0) (void)pick_session(store, session);  // throws UserError that lists the sessions
  } else {
    add_session(load_ranked(results, session, objective), std::nullopt, wisdom);
  }
  if (wisdom.empty())
    throw UserError("nothing has worked in these results, so there is no best to export", {results.string(), 0, 0});
  return wisdom;
}

std::vector<std::string> notes_of_sources(const std::map<std::string, std::vector<WisdomRecord>>& wisdom) {
  std::vector<std::string> notes;
  for (const auto& [kernel, records] : wisdom) {
    std::map<std::tuple<std::string, std::string, std::vector<std::int64_t>>, std::string> last;
    const auto place = [](const WisdomRecord& r) {
      return std::tuple(r.device.backend, r.device.name, r.problem_size);
    };
    for (const WisdomRecord& record : records) last[place(record)] = record.source_hash;
    const auto earlier = std::ranges::count_if(
        records, [&](const WisdomRecord& record) { return record.source_hash != last[place(record)]; });
    if (earlier > 0)
      notes.push_back(
          fmt::format("{} of {} records of {} are of another source than the latest of their device and size: they are "
                      "stale unless an application has that source (--session exports one session)",
                      earlier, records.size(), kernel));
  }
  return notes;
}

void refuse_unwritable(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && ::access(folder.c_str(), W_OK | X_OK) != 0) error.assign(errno, std::generic_category());
  if (error)
    throw UserError(fmt::format("wisdom cannot be written here: {}; name another folder", error.message()),
                    {folder.string(), 0, 0});
}

std::vector<WrittenWisdom> write_wisdom(const std::filesystem::path& folder,
                                        const std::map<std::string, std::vector<WisdomRecord>>& wisdom) {
  std::vector<WrittenWisdom> written;
  for (const auto& [kernel, records] : wisdom)
    written.push_back({wisdom_file(folder, kernel), kernel, records.size(), add_to_wisdom(folder, kernel, records),
                       records.empty() ? std::string() : records.back().provenance});
  return written;
}

std::vector<WisdomDevice> devices_of(const Control& control) {
  const std::string key = control.device_key();
  std::vector<WisdomDevice> found;
  for (const DeviceInfo& device : list_devices()) {
    const bool same = (!device.uuid.empty() && key.find(device.uuid) != std::string::npos) ||
                      (!device.pci_address.empty() && key.find(device.pci_address) != std::string::npos) ||
                      (device.is_cpu && control.id() == "cpufreq");
    if (same) found.push_back(wisdom_device(device));
  }
  if (found.empty())
    throw UserError(fmt::format("wisdom: no device of \"ergotune devices\" belongs to {}", control.id()));
  return found;
}

}  // namespace ergotune
