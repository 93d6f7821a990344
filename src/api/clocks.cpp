#include "api/clocks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/clock.hpp"
#include "ergotune/error.hpp"
#include "power/controls/control_backends.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

Json optional_number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json range_document(const ControlRange& range) {
  if (!range.supported) return nullptr;  // "why_not" tells why
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

ClockStatus look(const std::string& id, const std::vector<JournalStatus>& journals) {
  ClockStatus status;
  status.id = id;
  try {
    const auto control = open_control(id);
    status.key = control->device_key();
    status.lease = helper_lease(status.key, ControlEnvironment::from_environment());
    const auto usable = usable_control(id, &status.problem);
    status.permission = usable != nullptr;
    for (const auto quantity : kControlQuantities)
      status.ranges[quantity] = (usable ? *usable : *control).range(quantity);
    status.foreign = control->external_lock_sign();
    if (const auto monitor = monitor_for_control(control->reopen_id())) status.now = monitor->read();
  } catch (const std::exception& error) {
    status.problem = error.what();
  }
  for (const auto& journal : journals)
    if (!status.key.empty() && journal.device_key == status.key) status.journal = journal;
  // A clock that a session of ours has changed is no foreign setting.
  if (!status.lease.empty()) status.foreign.clear();
  if (status.journal &&
      std::ranges::any_of(status.journal->steps, [](const RestoreStep& step) { return step.quantity.has_value(); }))
    status.foreign.clear();
  return status;
}

Json device_document(const ClockStatus& status) {
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
  document["lease"] = status.lease.empty() ? Json(nullptr) : Json(status.lease);
  document["foreign_setting"] = status.foreign.empty() ? Json(nullptr) : Json(status.foreign);
  document["permission"] = status.permission;
  if (!status.problem.empty()) document["note"] = status.problem;
  return document;
}

Json report_document(const RestoreReport& report) {
  Json steps = Json::array();
  for (const auto& outcome : report.outcomes)
    steps.push_back({{"kind", outcome.step.kind},
                     {"target", outcome.step.target},
                     {"value", outcome.step.value},
                     {"status", to_string(outcome.result.status)},
                     {"message", outcome.description}});
  return Json{{"device", report.device}, {"complete", report.complete}, {"summary", report.summary}, {"steps", steps}};
}

/// Settings without a holder are restored at once. A guardian that was killed a moment ago, or is still at it, holds
/// its device a little longer: it is waited for, so that one call is enough.
std::vector<RestoreReport> restore_all() {
  constexpr double kPatience = 4;  // s
  const double deadline = host_seconds() + kPatience;
  std::vector<RestoreReport> reports;
  // Left by a session that is gone, and not tried yet: whoever holds it may let go of it at any moment.
  const auto left = [&] {
    const auto journals = list_journals();
    return std::ranges::any_of(journals, [&](const JournalStatus& journal) {
      const auto tried = [&](const RestoreReport& report) { return report.device == journal.device; };
      return !journal.session.alive && journal.damaged.empty() && std::ranges::none_of(reports, tried);
    });
  };
  while (true) {
    for (auto& report : replay_stale_journals(ControlEnvironment::from_environment(), true)) {
      // Of one that was tried before, the last counts.
      std::erase_if(reports, [&](const RestoreReport& before) { return before.device == report.device; });
      reports.push_back(std::move(report));
    }
    if (!left() || host_seconds() >= deadline) return reports;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

}  // namespace

std::vector<ClockStatus> clock_status(const std::string& only) {
  require_controls_allowed();
  const auto journals = list_journals();
  std::vector<std::string> ids = list_controls();
  if (!only.empty()) ids = {open_control(only)->id()};
  std::vector<ClockStatus> devices;
  for (const auto& id : ids) devices.push_back(look(id, journals));
  return devices;
}

Json clock_status_document(const std::vector<ClockStatus>& devices) {
  Json documents = Json::array();
  for (const ClockStatus& device : devices) documents.push_back(device_document(device));
  return Json{{"devices", std::move(documents)}};
}

std::unique_ptr<Control> chosen_control(const std::optional<std::string>& id) {
  std::vector<std::string> why_not, ids = list_controls();
  if (id) ids = {*id};
  std::vector<std::unique_ptr<Control>> usable;
  for (const std::string& one : ids) {
    std::string why;
    if (auto control = usable_control(one, &why)) usable.push_back(std::move(control));
    if (!why.empty()) why_not.push_back(why);
  }
  if (usable.size() == 1) return std::move(usable.front());
  if (usable.size() > 1)
    throw UserError(fmt::format("--control: name one of {}, through each of which something can be set here",
                                fmt::join(ids, ", ")));
  if (why_not.empty()) why_not.push_back("there is no clock or power limit (\"ergotune clocks status\")");
  throw UserError(fmt::format("nothing can be set here: {}", fmt::join(why_not, "; ")));
}

std::unique_ptr<ControlSession> hold_setting(std::unique_ptr<Control> control, const ControlSetting& setting,
                                             bool take_over, const std::string& purpose) {
  for (const auto& [quantity, value] : setting)
    if (const ControlResult checked = check_value(quantity, control->range(quantity), value); !checked.ok())
      throw UserError(checked.message);
  ControlSessionOptions options;
  options.take_over = take_over;
  std::vector<std::string> values;
  for (const auto& [quantity, value] : setting)
    values.push_back(fmt::format("{} {:g} {}", to_string(quantity), value, quantity_unit(quantity)));
  options.command = fmt::format("{} for {}", fmt::join(values, ", "), purpose);
  auto session = ControlSession::open(std::move(control), options);
  if (const ControlResult set = session->apply(setting); !set.ok()) throw UserError(set.message);
  return session;
}

bool RestoredClocks::complete() const {
  return unfinished.empty() &&
         std::ranges::all_of(reports, [](const RestoreReport& report) { return report.complete; });
}

RestoredClocks restore_clocks() {
  require_controls_allowed();
  RestoredClocks restored;
  restored.reports = restore_all();
  for (JournalStatus& journal : list_journals()) {
    if (journal.session.alive) restored.in_use.push_back(journal.device);
    if (journal.being_restored) restored.unfinished.push_back(std::move(journal));
  }
  return restored;
}

Json restored_clocks_document(const RestoredClocks& restored) {
  Json devices = Json::array(), restoring = Json::array();
  for (const RestoreReport& report : restored.reports) devices.push_back(report_document(report));
  for (const JournalStatus& journal : restored.unfinished) restoring.push_back(journal.device);
  return Json{{"complete", restored.complete()},
              {"devices", std::move(devices)},
              {"in_use", restored.in_use},
              {"being_restored", std::move(restoring)}};
}

}  // namespace ergotune
