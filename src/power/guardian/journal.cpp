#include "power/guardian/journal.hpp"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/hash.hpp"
#include "ergotune/error.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;
constexpr int kVersion = 1;
constexpr std::size_t kMaxSteps = 4096;  // a machine with 1,000 CPUs has some 3,000 cpufreq files

Json to_json(const Journal& journal) {
  Json steps = Json::array();
  for (const auto& step : journal.steps) {
    Json entry{{"kind", step.kind}, {"target", step.target}, {"value", step.value}};
    if (step.quantity) entry["quantity"] = to_string(*step.quantity);
    steps.push_back(std::move(entry));
  }
  return Json{{"format", "ergotune-journal"},
              {"version", kVersion},
              {"device", journal.device},
              {"reopen_id", journal.reopen_id},
              {"device_key", journal.device_key},
              {"boot_id", journal.boot_id},
              {"pid", journal.pid},
              {"start_ticks", journal.start_ticks},
              {"command", journal.command},
              {"since", journal.since},
              {"steps", std::move(steps)}};
}

// Returns the checksum of the document without its checksum, printed in a canonical form.
std::string checksum(const Json& document) {
  return content_hash(document.dump(-1, ' ', true, Json::error_handler_t::replace));
}

template <class T>
T member(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) throw Error(fmt::format("\"{}\" is missing", name));
  bool fits{};
  if constexpr (std::is_same_v<T, std::string>)
    fits = found->is_string();
  else if constexpr (std::is_floating_point_v<T>)
    fits = found->is_number();
  else
    fits = found->is_number_integer();
  if (!fits) throw Error(fmt::format("\"{}\" has the wrong type", name));
  return found->get<T>();
}

}  // namespace

std::string format_journal(const Journal& journal) {
  Json document = to_json(journal);
  document["checksum"] = checksum(document);
  return document.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

Journal parse_journal(const std::string& text) {
  Json document = Json::parse(text, nullptr, false);
  if (!document.is_object()) throw Error("it is not a JSON object");
  if (!document.contains("format") || document["format"] != "ergotune-journal")
    throw Error("it is not a journal of ergotune");
  if (const int version = member<int>(document, "version"); version != kVersion)
    throw Error(fmt::format("its version is {}; this ergotune reads version {}", version, kVersion));
  const std::string stated = member<std::string>(document, "checksum");
  document.erase("checksum");
  if (checksum(document) != stated) throw Error("its checksum is wrong: it was cut or changed");
  Journal journal;
  journal.device = member<std::string>(document, "device");
  journal.reopen_id = member<std::string>(document, "reopen_id");
  journal.device_key = member<std::string>(document, "device_key");
  journal.boot_id = member<std::string>(document, "boot_id");
  journal.pid = member<pid_t>(document, "pid");
  journal.start_ticks = member<std::uint64_t>(document, "start_ticks");
  journal.command = member<std::string>(document, "command");
  journal.since = member<double>(document, "since");
  const auto steps = document.find("steps");
  if (steps == document.end() || !steps->is_array()) throw Error("\"steps\" is missing");
  if (steps->size() > kMaxSteps) throw Error("it has too many steps");
  for (const auto& entry : *steps) {
    if (!entry.is_object()) throw Error("a step is not an object");
    RestoreStep step{member<std::string>(entry, "kind"), member<std::string>(entry, "target"),
                     member<std::string>(entry, "value")};
    if (entry.contains("quantity")) {
      step.quantity = control_quantity_from(member<std::string>(entry, "quantity"));
      if (!step.quantity) throw Error("a step has an unknown quantity");
    }
    journal.steps.push_back(std::move(step));
  }
  return journal;
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

namespace {
// Fields of /proc/<pid>/stat after the parenthesised name: state is the first, start time the 20th.
bool read_stat(pid_t pid, char& state, std::uint64_t& start_ticks) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(file, text)) return false;
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string field;
  for (int i = 1; fields >> field; ++i) {
    if (i == 1) state = field[0];
    if (i == 20) {
      start_ticks = std::strtoull(field.c_str(), nullptr, 10);
      return true;
    }
  }
  return false;
}
}  // namespace

std::uint64_t process_start_ticks(pid_t pid) {
  char state = 0;
  std::uint64_t ticks = 0;
  return read_stat(pid, state, ticks) ? ticks : 0;
}

bool process_alive(pid_t pid, std::uint64_t start_ticks) {
  char state = 0;
  std::uint64_t ticks = 0;
  return read_stat(pid, state, ticks) && ticks == start_ticks && state != 'Z' && state != 'X';
}

}  // namespace ergotune
