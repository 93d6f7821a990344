// ergotune clocks status | restore: shows which clocks and limits can be set and which are set, and restores settings
// that a dead session has left. Also defines the hidden verb of the guardian.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.hpp"
#include "cli/command.hpp"
#include "cli/verbs/clocks_set.hpp"
#include "ergotune/error.hpp"
#include "power/guardian/guardian.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

Json optional_number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json range_document(const ControlRange& range) {
  if (!range.supported) return nullptr;  // "why_not" gives the reason
  return Json{{"supported", range.values},
              {"min", range.low},
              {"max", range.high},
              {"default", optional_number(range.default_value)},
              {"set", optional_number(range.current)}};
}

Json journal_document(const JournalStatus& journal) {
  Json steps = Json::array();
  for (const auto& step : journal.steps)
    steps.push_back({{"kind", step.kind}, {"target", step.target}, {"value", step.value}});
  return Json{{"pid", journal.session.pid},
              {"command", journal.session.command},
              {"since", iso_time(journal.session.since)},
              {"session_alive", journal.session.alive},
              {"from_earlier_boot", journal.from_earlier_boot},
              {"being_restored", journal.being_restored},
              {"damaged", journal.damaged.empty() ? Json(nullptr) : Json(journal.damaged)},
              {"file", journal.file.string()},
              {"restores", std::move(steps)}};
}

struct DeviceStatus {
  std::string id, key;
  std::map<ControlQuantity, ControlRange> ranges;
  const JournalStatus* journal = nullptr;
  DeviceState now;
  bool permission = false;
  std::string foreign, problem;
};

DeviceStatus look(const std::string& id, const std::vector<JournalStatus>& journals) {
  DeviceStatus status;
  status.id = id;
  try {
    const auto control = open_control(id);
    status.key = control->device_key();
    for (const auto quantity :
         {ControlQuantity::core_clock_mhz, ControlQuantity::memory_clock_mhz, ControlQuantity::power_limit_w})
      status.ranges[quantity] = control->range(quantity);
    status.foreign = control->foreign_setting();
    if (const auto monitor = monitor_for_control(control->reopen_id())) status.now = monitor->read();
    std::string why_not;
    status.permission = usable_control(id, &why_not) != nullptr;
    status.problem = why_not;
  } catch (const std::exception& error) {
    status.problem = error.what();
  }
  for (const auto& journal : journals)
    if (!status.key.empty() && journal.device_key == status.key) status.journal = &journal;
  // A clock changed by one of our sessions is not a foreign setting.
  if (status.journal && std::any_of(status.journal->steps.begin(), status.journal->steps.end(),
                                    [](const RestoreStep& step) { return step.quantity.has_value(); }))
    status.foreign.clear();
  return status;
}

Json device_document(const DeviceStatus& status) {
  Json document{{"id", status.id}, {"device_key", status.key}};
  Json why_not = Json::object();
  for (const auto& [quantity, range] : status.ranges) {
    document[to_string(quantity)] = range_document(range);
    if (!range.why_not.empty()) why_not[to_string(quantity)] = range.why_not;
  }
  document["why_not"] = std::move(why_not);
  document["now"] = {{"core_clock_mhz", optional_number(status.now.core_clock_mhz)},
                     {"memory_clock_mhz", optional_number(status.now.memory_clock_mhz)},
                     {"clock_reasons", status.now.clock_reasons}};
  document["journal"] = status.journal ? journal_document(*status.journal) : Json(nullptr);
  document["foreign_setting"] = status.foreign.empty() ? Json(nullptr) : Json(status.foreign);
  document["permission"] = status.permission;
  if (!status.problem.empty()) document["note"] = status.problem;
  return document;
}

std::string range_text(const ControlRange& range, const std::string& unit, double now) {
  const std::string runs = now > 0 ? fmt::format(", now {:.0f}", now) : "";
  if (!range.supported)
    return fmt::format("cannot be set{}{}{}", range.why_not.empty() ? "" : ": ", range.why_not, runs);
  std::string words = range.values.empty() ? fmt::format("{:g} to {:g} {}", range.low, range.high, unit)
                                           : fmt::format("{} values, {:g} to {:g} {}", range.values.size(),
                                                         range.values.front(), range.values.back(), unit);
  if (range.default_value) words += fmt::format(", default {:g}", *range.default_value);
  if (range.current) words += fmt::format(", set to {:g}", *range.current);
  return words + runs;
}

std::string journal_text(const JournalStatus& journal) {
  if (!journal.damaged.empty()) return journal.damaged;
  return fmt::format("{} session pid {} (\"{}\", since {}): {} settings to restore{}",
                     journal.session.alive ? "running" : "ended", journal.session.pid, journal.session.command,
                     iso_time(journal.session.since), journal.steps.size(),
                     journal.session.alive    ? ""
                     : journal.being_restored ? "; its guardian is at it"
                                              : "; run: ergotune clocks restore");
}

void print_status(const DeviceStatus& status) {
  fmt::print("{}  {}\n", status.id, status.key);
  for (const auto& [quantity, range] : status.ranges) {
    const double now = quantity == ControlQuantity::core_clock_mhz     ? status.now.core_clock_mhz.value_or(0)
                       : quantity == ControlQuantity::memory_clock_mhz ? status.now.memory_clock_mhz.value_or(0)
                                                                       : 0;
    fmt::print("  {:<17} {}\n", to_string(quantity), range_text(range, quantity_unit(quantity), now));
  }
  fmt::print("  {:<17} {}\n", "permission", status.permission ? "yes" : "no");
  if (!status.foreign.empty()) fmt::print("  {:<17} {}\n", "foreign setting", status.foreign);
  if (status.journal) fmt::print("  {:<17} {}\n", "journal", journal_text(*status.journal));
  if (!status.problem.empty()) fmt::print("  {:<17} {}\n", "note", status.problem);
}

void run_status(const std::string& only, bool json) {
  require_controls_allowed();
  const auto journals = list_journals();
  std::vector<std::string> ids = list_controls();
  if (!only.empty()) ids = {open_control(only)->id()};
  Json devices = Json::array();
  for (const auto& id : ids) {
    const auto status = look(id, journals);
    if (json)
      devices.push_back(device_document(status));
    else
      print_status(status);
  }
  if (json)
    print_json(Json{{"devices", std::move(devices)}});
  else if (ids.empty())
    fmt::print("no clock or power control is here (looked for NVML, Tegra, amdgpu, cpufreq)\n");
}

Json report_document(const RestoreReport& report) {
  Json steps = Json::array();
  for (const auto& outcome : report.outcomes)
    steps.push_back({{"kind", outcome.step.kind},
                     {"target", outcome.step.target},
                     {"value", outcome.step.value},
                     {"status", to_string(outcome.result.status)},
                     {"message", outcome.words}});
  return Json{{"device", report.device}, {"complete", report.complete}, {"summary", report.summary}, {"steps", steps}};
}

/// Restores settings without a holder. A guardian that was just killed, or is still restoring, holds its device a
/// little longer: this waits for it, so that one call is enough.
std::vector<RestoreReport> restore_all() {
  constexpr double kPatience = 4;  // s
  const double deadline = host_seconds() + kPatience;
  std::vector<RestoreReport> reports;
  // Journals of ended sessions that were not tried yet: their holder may release them at any moment.
  const auto left = [&] {
    const auto journals = list_journals();
    return std::any_of(journals.begin(), journals.end(), [&](const JournalStatus& journal) {
      const auto tried = [&](const RestoreReport& report) { return report.device == journal.device; };
      return !journal.session.alive && journal.damaged.empty() && std::none_of(reports.begin(), reports.end(), tried);
    });
  };
  while (true) {
    for (auto& report : replay_stale_journals(ControlEnvironment::from_environment(), true)) {
      // For a device that was tried before, the last report counts.
      std::erase_if(reports, [&](const RestoreReport& before) { return before.device == report.device; });
      reports.push_back(std::move(report));
    }
    if (!left() || host_seconds() >= deadline) return reports;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

void run_restore(bool json) {
  require_controls_allowed();
  const auto reports = restore_all();
  Json devices = Json::array();
  bool complete = true;
  for (const auto& report : reports) {
    complete = complete && report.complete;
    devices.push_back(report_document(report));
    fmt::print(stderr, "{}\n", description_of(report));
  }
  Json running = Json::array(), restoring = Json::array();
  for (const auto& journal : list_journals()) {
    if (journal.session.alive) running.push_back(journal.device);
    if (!journal.being_restored) continue;
    restoring.push_back(journal.device);
    fmt::print(
        stderr,
        "{}: the session pid {} (\"{}\") has ended, and its guardian has not restored everything yet: its driver "
        "may hang\n",
        journal.device, journal.session.pid, journal.session.command);
  }
  const bool nothing = reports.empty() && restoring.empty();
  if (nothing && running.empty()) fmt::print(stderr, "nothing to restore: no session has left settings behind\n");
  if (nothing && !running.empty())
    fmt::print(stderr, "nothing to restore: {} is in use by a running session, which restores what it sets\n",
               running.front().get<std::string>());
  complete = complete && restoring.empty();
  if (json)
    print_json(Json{{"complete", complete}, {"devices", devices}, {"in_use", running}, {"being_restored", restoring}});
  if (!complete) throw Error("not everything could be restored; the journals are kept, run this again later");
}

}  // namespace

void add_clocks_command(Verb app) {
  enable_guardian_verb("guardian");

  Verb clocks = app.add_verb("clocks", "Show, set and restore clocks and power limits");
  clocks.require_verb();
  clocks.footer(
      "Examples:\n  ergotune clocks status --json\n  ergotune clocks set --core-clock 1395 -- ./simulate\n  ergotune "
      "clocks restore\n\nA tuning session puts "
      "everything back by "
      "itself, also when it is killed; `restore` is for what is left when its guardian was killed too, or "
      "the machine "
      "went down.");

  struct Options {
    bool json = false;
    std::string control;
  };
  auto options = std::make_shared<Options>();
  Verb status = clocks.add_verb("status", "Supported and present clocks and limits, journals, permission");
  add_json_option(status, options->json);
  status.add_option("--control", options->control, "Only this control (nvml:0, tegra, amdgpu:card0, cpufreq)");
  status.callback([options] { run_status(options->control, options->json); });

  add_clocks_set(clocks);

  Verb restore = clocks.add_verb("restore", "Restore what a session that died has left, from its journal");
  add_json_option(restore, options->json);
  restore.callback([options] { run_restore(options->json); });

  // Started by ControlSession, never by hand: hidden from the help.
  Verb guardian = app.add_verb("guardian", "");
  guardian.hide();
  guardian.keep_rest();
  guardian.callback([guardian] {
    if (const int code = run_guardian(guardian.rest()); code != 0) throw Exit{code};
  });
}

}  // namespace ergotune::cli
