// Text format of wisdom: a header and a JSON document per line.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/json_text.hpp"
#include "kernel/wisdom.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 2;  // 1 was one JSON document for all kernels

/// Header of a wisdom file of Kernel Launcher (KernelTuner/kernel_launcher), version 1.0: configurations are lists in
/// the order of its parameter names; times are in ms; devices are identified by name only.
struct KernelLauncherHeader {
  std::string key, objective;
  std::vector<std::string> parameters;
  /// Throws std::exception for an invalid header.
  static KernelLauncherHeader read(const Json& json);
  /// Converts a record under this header; throws std::exception for an invalid record.
  WisdomRecord record(const Json& json) const;
};

constexpr std::size_t kMostPerSize = 5;

/// Returns the factor to SI units: Kernel Launcher gives time in ms; the units of other objectives are unknown.
double scale(const std::string& objective) { return objective == "time" ? 1e-3 : 1; }

Json json_of(const Value& value) {
  if (value.is_bool()) return std::get<bool>(value.data());
  if (value.is_integer()) return value.as_integer();
  if (value.is_string()) return value.as_string();
  return value.as_real();
}

Json json_of(const Constants& values) {
  Json json = Json::object();
  for (const auto& [name, value] : values) json[name] = json_of(value);
  return json;
}

/// Accepts a boolean, a number or a string; throws for other types.
Value wisdom_value(const Json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  return json.get<std::string>();
}

std::vector<std::int64_t> wisdom_sizes(const Json& json) {
  if (!json.is_array()) throw std::invalid_argument("\"problem_size\" is not a list");
  std::vector<std::int64_t> sizes;
  for (const auto& size : json) {
    if (!size.is_number_integer())
      throw std::invalid_argument("\"problem_size\" holds something other than whole numbers");
    sizes.push_back(size.get<std::int64_t>());
  }
  return sizes;
}

Constants values_in(const Json& record, const char* key) {
  Constants values;
  if (record.contains(key))
    for (const auto& [name, value] : record.at(key).items()) values[name] = wisdom_value(value);
  return values;
}

/// Returns a string, or an empty one if the key is absent.
std::string text_in(const Json& json, const char* key) {
  return json.contains(key) ? json.at(key).get<std::string>() : std::string();
}

template <class T>
T number_in(const Json& json, const char* key, T otherwise) {
  return json.contains(key) ? json.at(key).get<T>() : otherwise;
}

void add(Json& json, const char* key, const std::string& text) {
  if (!text.empty()) json[key] = text;
}

Json json_of(const WisdomDevice& device) {
  Json json{{"name", device.name}};
  add(json, "backend", device.backend);
  add(json, "vendor", device.vendor);
  add(json, "architecture", device.architecture);
  add(json, "uuid", device.uuid);
  add(json, "driver", device.driver);
  if (device.memory_bytes > 0) json["memory_bytes"] = device.memory_bytes;
  if (device.multiprocessors > 0) json["multiprocessors"] = device.multiprocessors;
  return json;
}

WisdomDevice device_in(const Json& json) {
  return {.name = text_in(json, "name"),
          .backend = text_in(json, "backend"),
          .vendor = text_in(json, "vendor"),
          .architecture = text_in(json, "architecture"),
          .uuid = text_in(json, "uuid"),
          .driver = text_in(json, "driver"),
          .memory_bytes = number_in<std::int64_t>(json, "memory_bytes", 0),
          .multiprocessors = number_in<std::int64_t>(json, "multiprocessors", 0)};
}

WisdomRecord record_in(const Json& json) {
  WisdomRecord record;
  if (!json.at("configuration").is_object()) throw std::invalid_argument("\"configuration\" is not a table");
  record.configuration = values_in(json, "configuration");
  record.execution = values_in(json, "execution");
  if (json.contains("problem_size")) record.problem_size = wisdom_sizes(json.at("problem_size"));
  if (json.contains("size_names")) record.size_names = json.at("size_names").get<std::vector<std::string>>();
  if (json.contains("objective")) record.objective = json.at("objective").get<std::string>();
  const std::string better = json.contains("better") ? json.at("better").get<std::string>() : "lower";
  if (better != "lower" && better != "higher")
    throw std::invalid_argument("\"better\" is neither \"lower\" nor \"higher\"");
  record.maximise = better == "higher";
  if (json.contains("score") && !json.at("score").is_null()) record.score = json.at("score").get<double>();
  record.of_round = number_in(json, "of_round", false);
  if (json.contains("quantities")) {
    for (const auto& [name, quantity] : json.at("quantities").items())
      record.quantities[name] = {quantity.at("value").get<double>(), number_in(quantity, "standard_error", 0.0),
                                 number_in<std::int64_t>(quantity, "n", 0)};
  }
  record.device = device_in(json.at("device"));
  record.source_hash = text_in(json, "source_hash");
  record.space_hash = text_in(json, "space_hash");
  record.provenance = json.contains("provenance") ? json.at("provenance").get<std::string>() : "measured";
  record.confirmation_repeats = number_in(json, "confirmation_repeats", 0);
  record.version = text_in(json, "ergotune");
  record.compiler = text_in(json, "compiler");
  record.host = text_in(json, "host");
  record.tuned_at = text_in(json, "tuned_at");
  return record;
}

/// Reads lines with their numbers.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}
  /// Returns false at the end, and for a last line without a line end.
  bool next(std::string_view& line) {
    const auto end = rest_.find('\n');
    if (end == std::string_view::npos) return false;
    line = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    ++number_;
    return true;
  }
  int number() const { return number_; }

 private:
  std::string_view rest_;
  int number_ = 0;
};

bool is_empty_report(std::string_view line) {
  const auto first = line.find_first_not_of(" \t");
  return first == std::string_view::npos || line[first] == '#' || line.substr(first).starts_with("//");
}

/// The contents of a header. ergotune's records are self-contained, so that they can be read even if the header is
/// damaged.
struct Header {
  bool of_kernel_launcher = false;
  KernelLauncherHeader other;
};

Header read_header(const Json& json, Wisdom& wisdom, const std::string& place) {
  Header header;
  if (json.is_object() && json.contains("ergotune_wisdom")) {
    const int version = json.at("ergotune_wisdom").get<int>();
    if (version != kVersion) {
      wisdom.warnings.push_back(
          fmt::format("{}: this is wisdom of version {}, and this ergotune reads {}: the file is left out", place,
                      version, kVersion));
      wisdom.other_version = true;
    }
    wisdom.kernel = text_in(json, "kernel");
    return header;
  }
  if (json.is_object() && json.contains("tunable_parameters")) {
    header.of_kernel_launcher = true;
    header.other = KernelLauncherHeader::read(json);
    wisdom.kernel = header.other.key;
    return header;
  }
  throw std::invalid_argument("it is not a header of a wisdom file");
}

}  // namespace

std::string to_json_line(const WisdomRecord& record) {
  Json json{{"configuration", json_of(record.configuration)}};
  if (!record.execution.empty()) json["execution"] = json_of(record.execution);
  json["problem_size"] = record.problem_size;
  if (!record.size_names.empty()) json["size_names"] = record.size_names;
  json["objective"] = record.objective;
  json["better"] = record.maximise ? "higher" : "lower";
  if (record.score && std::isfinite(*record.score)) json["score"] = *record.score;
  if (record.of_round) json["of_round"] = true;
  if (!record.quantities.empty()) {
    Json& quantities = json["quantities"] = Json::object();
    for (const auto& [name, q] : record.quantities) {
      if (!std::isfinite(q.value)) continue;
      quantities[name] = {{"value", q.value}};
      if (std::isfinite(q.standard_error) && q.standard_error != 0)
        quantities[name]["standard_error"] = q.standard_error;
      if (q.n > 0) quantities[name]["n"] = q.n;
    }
  }
  json["device"] = json_of(record.device);
  add(json, "source_hash", record.source_hash);
  add(json, "space_hash", record.space_hash);
  json["provenance"] = record.provenance;
  if (record.confirmation_repeats > 0) json["confirmation_repeats"] = record.confirmation_repeats;
  add(json, "ergotune", record.version);
  add(json, "compiler", record.compiler);
  add(json, "host", record.host);
  add(json, "tuned_at", record.tuned_at);
  return json_text(json);
}

std::string to_text(const Wisdom& wisdom) {
  std::string text = json_text(Json{{"ergotune_wisdom", kVersion}, {"kernel", wisdom.kernel}}) + "\n";
  for (const WisdomRecord& record : wisdom.records) text += to_json_line(record) + "\n";
  return text;
}

void mark_simulated(WisdomRecord& record) {
  constexpr std::string_view kPrefix = "simulated ";
  const bool has_name = record.device.name.starts_with(kPrefix);
  if (has_name) record.provenance = "simulated";
  if (!has_name && record.provenance == "simulated") record.device.name.insert(0, kPrefix);
}

Wisdom parse_wisdom(std::string_view text, const std::string& name) {
  Wisdom wisdom;
  std::optional<Header> header;
  Lines lines(text);
  for (std::string_view line; lines.next(line);) {
    if (is_empty_report(line)) continue;
    const std::string place = fmt::format("{}:{}", name, lines.number());
    try {
      const auto json = parse_json<Json>(line);
      if (!header || (json.is_object() && json.contains("ergotune_wisdom"))) {  // of a concatenated file
        header = read_header(json, wisdom, place);
        if (wisdom.other_version) return wisdom;
        continue;
      }
      wisdom.records.push_back(header->of_kernel_launcher ? header->other.record(json) : record_in(json));
      mark_simulated(wisdom.records.back());
    } catch (const std::exception& error) {
      const std::string message = error.what();
      wisdom.warnings.push_back(fmt::format("{}: this line is left out: {}", place, message));
      if (!header) header.emplace();
    }
  }
  return wisdom;
}

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

std::string to_kernel_launcher(Wisdom wisdom, std::vector<std::string>& notes) {
  const std::size_t all = wisdom.records.size();
  const std::size_t unmeasured = std::erase_if(
      wisdom.records, [](const WisdomRecord& r) { return r.provenance == "simulated" || r.provenance == "modelled"; });
  if (unmeasured > 0)
    notes.push_back(
        fmt::format("{}: {} of {} records are left out: they are simulated or modelled, which Kernel Launcher's format "
                    "cannot state; --format ergotune keeps them",
                    wisdom.kernel, unmeasured, all));
  if (unmeasured > 0 && unmeasured == all) return {};
  const auto usable = [](const WisdomRecord& r) { return r.score && !r.maximise; };
  const auto first = std::ranges::find_if(wisdom.records, usable);
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
    const bool same = record.configuration.size() == names.size() &&
                      std::ranges::all_of(names, [&](const auto& name) { return record.configuration.contains(name); });
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
      json_text(Json{
          {"version", "1.0"}, {"objective", first->objective}, {"tunable_parameters", names}, {"key", wisdom.kernel}}) +
      "\n";
  for (auto& [where, records] : groups) {
    std::ranges::stable_sort(records, [](const auto* a, const auto* b) { return *a->score < *b->score; });
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
      text += json_text(line) + "\n";
    }
  }
  return text;
}

}  // namespace ergotune
