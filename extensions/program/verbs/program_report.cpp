#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "cli/live_options.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/table.hpp"
#include "program/verbs/program_command.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string unit_of_setting(const SettingChoice& choice) { return choice.name == "power_limit_w" ? "W" : "MHz"; }

/// The command that runs the program at a setting.
std::string run_with(const ProgramFinding& finding, double setting) {
  std::vector<std::string> words{"ergotune", "clocks", "set", "--control", finding.control};
  words.insert(words.end(), finding.node_options.begin(), finding.node_options.end());
  if (!finding.wisdom.empty())
    words.insert(words.end(), {"--wisdom", finding.wisdom});
  else
    words.insert(words.end(), {option_of(finding.choice->name), fmt::format("{:g}", setting)});
  return shell_command(words) + " -- " + shell_command(finding.command);
}

/// Those of one device only.
std::vector<std::string> set_with(const ProgramFinding& finding) {
  if (!finding.choice->best || !finding.node_options.empty()) return {};
  return setting_commands(finding.control, finding.choice->name, *finding.choice->best);
}

Json ratio_document(const std::optional<Ratio>& ratio) {
  if (!ratio) return nullptr;
  return {{"value", number_or_null(ratio->value)},
          {"standard_error", number_or_null(ratio->standard_error)},
          {"half_width", number_or_null(ratio->half_width)}};
}

Json model_document(const PowerModel& model) {
  if (!model.usable) return nullptr;
  Json document{{"idle_w", model.curve.idle_w},
                {"dynamic_w_per_mhz", model.curve.dynamic_w_per_mhz},
                {"voltage_slope_per_mhz", model.curve.voltage_slope_per_mhz}};
  document["ridge_mhz"] = model.found ? Json(model.ridge_mhz.value) : Json(nullptr);
  document["relative_deviation"] = model.relative_deviation;
  return document;
}

Json entry_document(double setting, const ConfigurationResult& entry) {
  Json document{{"setting", setting}};
  document.update(to_json(entry.measurement));
  document["confirmation_repeats"] = entry.rounds;
  return document;
}

/// "12.3 % less", "1.2 % more".
std::string change(const Ratio& ratio, const char* less, const char* more) {
  const double percent = 100 * (ratio.value - 1);
  return fmt::format("{:.1f} +-{:.1f} % {}", std::abs(percent), 100 * ratio.half_width, percent < 0 ? less : more);
}

void print_quantities(const Measurement& m) {
  for (const char* name : {"time", "energy", "power", "cpu_time", "peak_memory"})
    if (m.quantities.contains(name)) fmt::print("  {:<12} {}\n", name, with_interval(m, name, {}));
  for (const std::string& warning : m.warnings) fmt::print("  note: {}\n", warning);
}

void print_tried(const SettingChoice& choice) {
  Table table({unit_of_setting(choice), "time", "energy", "power", ""});
  table.align_left(4);
  for (const auto& [setting, entry] : choice.tried) {
    const Measurement& m = entry.measurement;
    const auto cell = [&](const char* name) { return usable(m.status) ? with_interval(m, name, {}) : std::string(); };
    std::string remark = usable(m.status) ? "" : to_string(m.status) + ": " + m.message.substr(0, m.message.find('\n'));
    if (setting == choice.unchanged) remark = "unchanged";
    if (choice.best && setting == *choice.best) remark = remark.empty() ? "best" : "best, " + remark;
    table.add({fmt::format("{:g}", setting), cell("time"), cell("energy"), cell("power"), remark});
  }
  fmt::print("{}", table.to_string(2, terminal_width()));
}

void print_choice(const ProgramFinding& finding) {
  const SettingChoice& choice = *finding.choice;
  const std::string unit = unit_of_setting(choice);
  print_tried(choice);
  if (!choice.best) {
    fmt::print("\nNo setting has an answer: {}\n",
               choice.stopped_because.empty() ? "the program failed at each" : choice.stopped_because);
    return;
  }
  const Measurement& best = choice.tried.at(*choice.best).measurement;
  fmt::print("\nLeast energy within {:g} % of the fastest: {} = {:g} {}\n", 100 * finding.max_slowdown, choice.name,
             *choice.best, unit);
  print_quantities(best);
  if (choice.energy_ratio && *choice.best != choice.unchanged) {
    fmt::print("  {} energy and {} than unchanged ({:g} {})\n", change(*choice.energy_ratio, "less", "more"),
               change(*choice.time_ratio, "faster", "slower"), choice.unchanged, unit);
    if (choice.energy_ratio->value + choice.energy_ratio->half_width >= 1)
      fmt::print("  the intervals leave open whether it saves anything: leave the machine as it is\n");
  } else if (*choice.best == choice.unchanged) {
    fmt::print("  that is what the machine does when left alone: nothing is to be set\n");
    return;
  }
  fmt::print("\nRun with it:\n  {}\n", run_with(finding, *choice.best));
  const auto commands = set_with(finding);
  if (commands.empty()) return;
  fmt::print("Or set it for all (as root), and back again:\n");
  for (const std::string& command : commands) fmt::print("  {}\n", command);
}

}  // namespace

std::string option_of(const std::string& parameter) {
  return parameter == "power_limit_w" ? "--power-limit" : "--core-clock";
}

std::vector<std::string> setting_commands(const std::string& control, const std::string& parameter, double setting) {
  if (control.starts_with("nvml:")) {
    const std::string gpu = control.substr(5);
    if (parameter == "core_clock_mhz")
      return {fmt::format("nvidia-smi -i {0} --lock-gpu-clocks={1:g},{1:g}", gpu, setting),
              fmt::format("nvidia-smi -i {} --reset-gpu-clocks", gpu)};
    return {fmt::format("nvidia-smi -i {} --power-limit={:g}", gpu, setting)};
  }
  if (control == "cpufreq" && parameter == "core_clock_mhz")
    return {fmt::format("cpupower frequency-set --min {0:g}MHz --max {0:g}MHz", setting)};
  return {};
}

Json document_of(const ProgramFinding& finding) {
  Json document{{"program", finding.command}, {"max_slowdown", finding.max_slowdown}};
  document["control"] = finding.control.empty() ? Json(nullptr) : Json(finding.control);
  document["why_not"] = finding.why_not;
  if (!finding.choice) {
    document["best"] = nullptr;
    document["measured"] = finding.measured ? to_json(*finding.measured) : Json(nullptr);
    return document;
  }
  const SettingChoice& choice = *finding.choice;
  document["quantity"] = choice.name;
  const auto entry = [&](double setting) {
    const auto found = choice.tried.find(setting);
    return found == choice.tried.end() ? Json(nullptr) : entry_document(setting, found->second);
  };
  document["unchanged"] = entry(choice.unchanged);
  document["best"] = choice.best ? entry(*choice.best) : Json(nullptr);
  document["time_ratio"] = ratio_document(choice.time_ratio);
  document["energy_ratio"] = ratio_document(choice.energy_ratio);
  document["probability_best"] = choice.probability_best ? Json(*choice.probability_best) : Json(nullptr);
  document["confirmation_repeats"] = choice.confirmation_repeats;
  document["tried"] = Json::array();
  for (const auto& [setting, tried] : choice.tried) document["tried"].push_back(entry_document(setting, tried));
  document["model"] = model_document(choice.model);
  document["run_with"] = choice.best ? Json(run_with(finding, *choice.best)) : Json(nullptr);
  document["set_with"] = set_with(finding);
  document["notes"] = finding.notes;
  document["stopped_because"] = choice.stopped_because;
  return document;
}

void print_finding(const ProgramFinding& finding) {
  fmt::print("{}\n", shell_command(finding.command));
  if (finding.choice) return print_choice(finding);
  const Measurement& m = *finding.measured;
  if (!usable(m.status)) {
    fmt::print("  {}: {}\n", to_string(m.status), m.message);
    return;
  }
  print_quantities(m);
  if (!m.message.empty()) fmt::print("  note: {}\n", m.message);
  fmt::print("No setting was tried:\n");
  for (const std::string& why : finding.why_not) fmt::print("  {}\n", why);
}

}  // namespace ergotune::cli
