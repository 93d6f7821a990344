#include "cli/verbs/clocks_set.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include "cli/command.hpp"
#include "cli/hold_settings.hpp"
#include "device/device.hpp"
#include "ergotune/error.hpp"
#include "kernel/wisdom.hpp"
#include "kernel/wisdom_key.hpp"

namespace ergotune::cli {
namespace {

struct Options {
  std::vector<std::string> command;
  std::optional<std::string> control;
  std::optional<double> core_clock, memory_clock, power_limit;
  std::optional<int> process;
  std::vector<std::string> wisdom;
  bool take_over = false, background = false;
};

/// The device whose settings the control changes.
WisdomDevice device_of(const Control& control) {
  const std::string key = control.device_key();
  for (const DeviceInfo& device : list_devices()) {
    const bool same = (!device.uuid.empty() && key.find(device.uuid) != std::string::npos) ||
                      (!device.pci_address.empty() && key.find(device.pci_address) != std::string::npos) ||
                      (device.is_cpu && control.id() == "cpufreq");
    if (same) return wisdom_device(device);
  }
  throw UserError(fmt::format("--wisdom: no device of \"ergotune devices\" belongs to {}", control.id()));
}

/// The setting in the newest suitable record of each kernel. If kernels differ, the highest value of each quantity, so
/// that none runs at lower clocks than it was tuned for.
ControlSetting setting_of_wisdom(const std::vector<std::string>& sources, const Control& control) {
  WisdomRequest request;
  request.device = device_of(control);
  ControlSetting setting;
  std::map<ControlQuantity, std::map<double, std::vector<std::string>>> kernels;
  std::vector<std::filesystem::path> files;
  for (const std::string& source : sources)
    for (auto& file : wisdom_files(source)) files.push_back(std::move(file));
  for (const auto& file : files) {
    Wisdom wisdom = read_wisdom(file).value_or(Wisdom{});
    print_warnings(file, wisdom.warnings);
    std::erase_if(wisdom.records, [](const WisdomRecord& record) { return record.execution.empty(); });
    const WisdomChoice choice = select_wisdom(wisdom.records, request);
    if (choice.match != WisdomMatch::exact && choice.match != WisdomMatch::near_size) continue;
    for (const auto& [name, value] : choice.record->execution)
      if (const auto quantity = control_quantity_from(name)) {
        setting[*quantity] = std::max(setting[*quantity], value.as_real());
        kernels[*quantity][value.as_real()].push_back(wisdom.kernel);
      }
  }
  if (setting.empty())
    throw UserError(fmt::format("{}: no record of {} has a clock or limit; tune with execution parameters",
                                fmt::join(sources, ", "), request.device.name));
  for (const auto& [quantity, values] : kernels) {
    if (values.size() < 2) continue;
    std::string list;
    for (const auto& [value, names] : values)
      list += fmt::format("{}{:g} for {}", list.empty() ? "" : ", ", value, fmt::join(names, " and "));
    fmt::print(stderr, "note: kernels differ in {}: {}; the highest is set\n", to_string(quantity), list);
  }
  return setting;
}

void set(const Options& options) {
  if (options.command.empty() == !options.process)
    throw UserError("name either a command, after --, or a process, with --for");
  if (options.background && !options.process) throw UserError("--background is for --for: a command is waited for");
  if (!options.core_clock && !options.memory_clock && !options.power_limit && options.wisdom.empty())
    throw UserError("nothing is to be set: give --core-clock, --memory-clock, --power-limit or --wisdom");
  require_controls_allowed();
  std::optional<Background> background;  // created before drivers start threads, which a fork would lose
  if (options.background) background.emplace();
  auto control = chosen_control(options.control);
  ControlSetting setting;
  if (!options.wisdom.empty()) setting = setting_of_wisdom(options.wisdom, *control);
  for (const auto& [quantity, value] : {std::pair(ControlQuantity::core_clock_mhz, options.core_clock),
                                        std::pair(ControlQuantity::memory_clock_mhz, options.memory_clock),
                                        std::pair(ControlQuantity::power_limit_w, options.power_limit)})
    if (value) setting[quantity] = *value;
  for (const auto& [quantity, value] : setting)
    fmt::print(stderr, "{}: {} {:g} {}\n", control->id(), to_string(quantity), value, quantity_unit(quantity));
  if (options.process)
    return hold_for(std::move(control), setting, *options.process, options.take_over,
                    background ? &*background : nullptr);
  throw Exit{run_at(std::move(control), setting, options.command, options.take_over)};
}

}  // namespace

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
  verb.add_option("--control", options->control, "Through this control (the only one there is)");
  verb.add_flag("--take-over", options->take_over, "Set clocks although another process seems to have locked them");
  verb.footer(
      "Examples:\n"
      "  ergotune clocks set --control nvml:0 --core-clock 1395 -- ./simulate input.nml\n"
      "  ergotune clocks set --wisdom wisdom -- ./simulate input.nml\n"
      "  ergotune clocks set --control nvml:0 --core-clock 1395 --background --for $$\n"
      "Settings are restored however the program or this command ends. A device belongs to one session at a time, the\n"
      "first; `ergotune clocks status` names it. It needs root, or a policy of ergotuned that permits the value.");
  verb.callback([options] { set(*options); });
}

}  // namespace ergotune::cli
