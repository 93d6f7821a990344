// ergotune clocks status | restore: shows which clocks and limits can be set and which are set, and restores settings
// that a dead session has left. Also defines the hidden verb of the guardian.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "api/clocks.hpp"
#include "base/clock.hpp"
#include "cli/command.hpp"
#include "cli/companions.hpp"
#include "cli/hold_settings.hpp"
#include "cli/run_here.hpp"
#include "cli/verb.hpp"
#include "ergotune/error.hpp"
#include "power/guardian/guardian.hpp"

namespace ergotune::cli {
namespace {

struct Options : NodeOptions {
  std::vector<std::string> command;
  std::optional<std::string> control;
  std::optional<double> core_clock, memory_clock, power_limit;
  std::optional<int> process;
  std::vector<std::string> wisdom;
  std::string requests;
  bool take_over = false, background = false;
};

ControlSetting values_of(const Options& options) {
  ControlSetting setting;
  for (const auto& [quantity, value] : {std::pair(ControlQuantity::core_clock_mhz, options.core_clock),
                                        std::pair(ControlQuantity::memory_clock_mhz, options.memory_clock),
                                        std::pair(ControlQuantity::power_limit_w, options.power_limit)})
    if (value) setting[quantity] = *value;
  return setting;
}

/// One setting for all nodes that a parallel program runs on.
void set_on_nodes(const Options& options) {
  if (options.command.empty()) throw UserError("with nodes name a command, after --; --for is a process of one node");
  require_program(options.command);
  nlohmann::json values = nlohmann::json::object();
  for (const auto& [quantity, value] : values_of(options)) values[to_string(quantity)] = value;
  std::vector<std::string> wisdom;  // nodes see it by its absolute path
  for (const std::string& path : options.wisdom) wisdom.push_back(std::filesystem::absolute(path));
  const nlohmann::json clocks{{"control", options.control ? nlohmann::json(*options.control) : nlohmann::json()},
                              {"take_over", options.take_over},
                              {"purpose", fmt::format("\"{}\"", fmt::join(options.command, " "))},
                              {"program", program_name(options.command)},
                              {"wisdom", wisdom},
                              {"set", values}};
  const auto companion = companion_on_nodes(options, {{"clocks", clocks}});
  companion->begin();
  const int code = run_here(options.command);
  bool complete = true;
  for (const auto& node : nlohmann::json::parse(companion->end())) {
    if (!node.contains("error")) continue;
    complete = false;
    fmt::print(stderr, "warning: node {}: {}\n", node.at("node").get<std::string>(),
               node.at("error").get<std::string>());
  }
  throw Exit{code == 0 && !complete ? kNoAnswer : code};
}

void set(const Options& options) {
  if (options.command.empty() == !options.process)
    throw UserError("name either a command, after --, or a process, with --for");
  if (options.background && !options.process) throw UserError("--background is for --for: a command is waited for");
  if (!options.requests.empty() && !options.process) throw UserError("--requests is for --for");
  if (!options.core_clock && !options.memory_clock && !options.power_limit && options.wisdom.empty())
    throw UserError("nothing is to be set: give --core-clock, --memory-clock, --power-limit or --wisdom");
  if (options.any()) return set_on_nodes(options);
  require_controls_allowed();
  std::optional<Background> background;  // created before drivers start threads, which a fork would lose
  if (options.background) background.emplace();
  auto control = chosen_control(options.control);
  ControlSetting setting;
  if (!options.wisdom.empty()) {
    const auto program = options.command.empty() ? std::string() : program_name(options.command);
    setting = setting_of_wisdom(options.wisdom, *control, program);
  }
  for (const auto& [quantity, value] : values_of(options)) setting[quantity] = value;
  for (const auto& [quantity, value] : setting)
    fmt::print(stderr, "{}: {} {:g} {}\n", control->id(), to_string(quantity), value, quantity_unit(quantity));
  if (options.process)
    return hold_for(std::move(control), setting, *options.process, options.take_over, options.requests,
                    background ? &*background : nullptr);
  throw Exit{run_at(std::move(control), setting, options.command, options.take_over)};
}

void add_clocks_set(Verb clocks) {
  auto options = std::make_shared<Options>();
  Verb verb = clocks.add_verb("set", "Run a program at a clock or power limit, and restore it afterwards");
  verb.add_option("COMMAND", options->command, "The program and its arguments, after --").take_all();
  verb.add_option("--core-clock", options->core_clock, "Core clock (MHz)").kind("NUMBER").positive();
  verb.add_option("--memory-clock", options->memory_clock, "Memory clock (MHz)").kind("NUMBER").positive();
  verb.add_option("--power-limit", options->power_limit, "Power limit (W)").kind("NUMBER").positive();
  verb.add_option("--wisdom", options->wisdom,
                  "Settings that tuning found, from this folder or file; repeatable; where kernels differ, the highest")
      .existing_path();
  verb.add_option("--for", options->process, "Until the process with this number ends, instead of a command")
      .kind("PID")
      .positive();
  verb.add_flag("--background", options->background, "With --for: return as soon as the setting is in force");
  verb.add_option("--requests", options->requests,
                  "With --for: a FIFO from which core clocks (MHz, one a line) are read and set; the launcher's, for a "
                  "clock for each kernel")
      .existing_path();
  verb.add_option("--control", options->control, "Through this control (the only one there is)");
  add_node_options(verb, *options, "Set them on");
  verb.add_flag("--take-over", options->take_over, "Set clocks although another process seems to have locked them");
  verb.footer(
      "Examples:\n"
      "  ergotune clocks set --control nvml:0 --core-clock 1395 -- ./simulate input.nml\n"
      "  ergotune clocks set --wisdom wisdom -- ./simulate input.nml\n"
      "  ergotune clocks set --control nvml:0 --core-clock 1395 --background --for $$\n"
      "  ergotune clocks set --nodes slurm --core-clock 1395 -- srun ./simulate input.nml\n"
      "Settings are restored however the program or this command ends. A device belongs to one session at a time, the\n"
      "first; `ergotune clocks status` names it. It needs root, or a policy of ergotuned that permits the value.");
  verb.callback([options] { set(*options); });
}

std::string range_text(const ControlRange& range, const std::string& unit, double now) {
  const std::string runs = now > 0 ? fmt::format(", now {:.0f}", now) : "";
  if (!range.supported)
    return fmt::format("cannot be set{}{}{}", range.why_not.empty() ? "" : ": ", range.why_not, runs);
  std::string text = range.values.empty() ? fmt::format("{:g} to {:g} {}", range.low, range.high, unit)
                                          : fmt::format("{} values, {:g} to {:g} {}", range.values.size(),
                                                        range.values.front(), range.values.back(), unit);
  if (range.default_value) text += fmt::format(", default {:g}", *range.default_value);
  if (range.current) text += fmt::format(", set to {:g}", *range.current);
  return text + runs;
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
    fmt::print(stderr,
               "{}: the session pid {} (\"{}\") has ended, and its guardian has not restored everything yet: its "
               "driver may hang\n",
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
      "clocks restore\n\nA tuning session restores everything by itself, also when it is killed; `restore` is for "
      "what is left when its guardian was killed too, or the machine went down.\n"
      "In Python: ergotune.clock_status(), ergotune.clocks(core_clock_mhz=1395), ergotune.restore_clocks()");

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
