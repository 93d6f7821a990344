// ergotune clocks status | restore: shows which clocks and limits can be set and which are set, and restores settings
// that a dead session has left. Also defines the hidden verb of the guardian.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "api/clocks.hpp"
#include "base/clock.hpp"
#include "cli/command.hpp"
#include "cli/verbs/clocks_set.hpp"
#include "ergotune/error.hpp"
#include "power/guardian/guardian.hpp"

namespace ergotune::cli {
namespace {

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

void print_status(const ClockStatus& status) {
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
  if (!status.lease.empty()) fmt::print("  {:<17} {}\n", "lease", status.lease);
  if (!status.problem.empty()) fmt::print("  {:<17} {}\n", "note", status.problem);
}

void run_status(const std::string& only, bool json) {
  const auto devices = clock_status(only);
  if (json) return print_json(clock_status_document(devices));
  for (const ClockStatus& device : devices) print_status(device);
  if (devices.empty()) fmt::print("no clock or power control is here (looked for NVML, Tegra, amdgpu, cpufreq)\n");
}

void run_restore(bool json) {
  const RestoredClocks restored = restore_clocks();
  for (const RestoreReport& report : restored.reports) fmt::print(stderr, "{}\n", description_of(report));
  for (const JournalStatus& journal : restored.unfinished)
    fmt::print(
        stderr,
        "{}: the session pid {} (\"{}\") has ended, and its guardian has not restored everything yet: its driver "
        "may hang\n",
        journal.device, journal.session.pid, journal.session.command);
  if (restored.reports.empty() && restored.unfinished.empty()) {
    if (restored.in_use.empty())
      fmt::print(stderr, "nothing to restore: no session has left settings behind\n");
    else
      fmt::print(stderr, "nothing to restore: {} is in use by a running session, which restores what it sets\n",
                 restored.in_use.front());
  }
  if (json) print_json(restored_clocks_document(restored));
  if (!restored.complete())
    throw Error("not everything could be restored; the journals are kept, run this again later");
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
