#include "kernel/kernel_launcher_wisdom.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostPerSize = 5;

/// Kernel Launcher counts time in ms; other objectives have no unit of its own.
double scale(const std::string& objective) { return objective == "time" ? 1e-3 : 1; }

Json json_of(const Value& value) {
  return std::visit([](const auto& v) { return Json(v); }, value.data());
}

}  // namespace

KernelLauncherHeader KernelLauncherHeader::read(const Json& json) {
  if (!json.contains("version") || json.at("version") != "1.0")
    throw std::invalid_argument("Kernel Launcher's wisdom is read in version \"1.0\"");
  return {json.at("key").get<std::string>(), json.at("objective").get<std::string>(),
          json.at("tunable_parameters").get<std::vector<std::string>>()};
}

WisdomRecord KernelLauncherHeader::record(const Json& json) const {
  const Json& values = json.at("config");
  if (!values.is_array() || values.size() != parameters.size())
    throw std::invalid_argument(
        fmt::format("\"config\" has not the {} values that the header names", parameters.size()));
  WisdomRecord record;
  for (std::size_t i = 0; i < parameters.size(); ++i) record.configuration[parameters[i]] = wisdom_value(values[i]);
  record.problem_size = wisdom_sizes(json.at("problem_size"));
  record.objective = objective;
  const double score = json.at(objective).get<double>() * scale(objective);
  record.score = score;
  record.quantities[objective] = {score, 0, 0};
  if (!json.contains("environment")) return record;
  const Json& environment = json.at("environment");
  const auto text = [&](const char* key) {
    return environment.contains(key) && environment.at(key).is_string() ? environment.at(key).get<std::string>()
                                                                        : std::string();
  };
  record.device.name = text("device_name");
  record.device.backend = "cuda";
  record.device.vendor = "nvidia";
  record.host = text("host_name");
  record.tuned_at = text("date");
  return record;
}

std::string to_kernel_launcher(const Wisdom& wisdom, std::vector<std::string>& notes) {
  const auto usable = [](const WisdomRecord& r) { return r.score && !r.maximise; };
  const auto first = std::find_if(wisdom.records.begin(), wisdom.records.end(), usable);
  if (first == wisdom.records.end()) {
    notes.push_back(fmt::format(
        "{}: Kernel Launcher knows objectives that are better when lower, and no record has one", wisdom.kernel));
    return {};
  }
  std::vector<std::string> names;
  for (const auto& [name, value] : first->configuration) names.push_back(name);
  std::map<std::pair<std::string, std::vector<std::int64_t>>, std::vector<const WisdomRecord*>> groups;
  std::size_t left_out = 0;
  for (const WisdomRecord& record : wisdom.records) {
    const bool same =
        record.configuration.size() == names.size() &&
        std::all_of(names.begin(), names.end(), [&](const auto& name) { return record.configuration.contains(name); });
    if (!usable(record) || record.objective != first->objective || !same || record.problem_size.size() > 3) {
      ++left_out;
      continue;
    }
    groups[{record.device.name, record.problem_size}].push_back(&record);
  }
  if (left_out > 0)
    notes.push_back(fmt::format(
        "{}: {} of {} records are left out: another objective than {}, other parameters, or more than three sizes",
        wisdom.kernel, left_out, wisdom.records.size(), first->objective));
  std::string text =
      Json{{"version", "1.0"}, {"objective", first->objective}, {"tunable_parameters", names}, {"key", wisdom.kernel}}
          .dump(-1, ' ', false, Json::error_handler_t::replace) +
      "\n";
  for (auto& [where, records] : groups) {
    std::stable_sort(records.begin(), records.end(),
                     [](const auto* a, const auto* b) { return *a->score < *b->score; });
    if (records.size() > kMostPerSize) records.resize(kMostPerSize);
    for (const WisdomRecord* record : records) {
      Json values = Json::array();
      for (const std::string& name : names) values.push_back(json_of(record->configuration.at(name)));
      const Json line{
          {"config", values},
          {"problem_size", record->problem_size},
          {first->objective, *record->score / scale(first->objective)},
          {"environment",
           {{"device_name", record->device.name}, {"host_name", record->host}, {"date", record->tuned_at}}}};
      text += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    }
  }
  return text;
}

}  // namespace ergotune
