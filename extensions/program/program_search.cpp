#include "program/program_search.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "api/wisdom_records.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "ergotune/error.hpp"
#include "measure/execution_parameters.hpp"
#include "power/controls/control.hpp"
#include "power/sensors/sensor.hpp"
#include "problem/program.hpp"
#include "report/result_document.hpp"
#include "tune/session/single_configuration.hpp"

namespace ergotune {
namespace {

using Json = nlohmann::ordered_json;

/// The part of a sensor's or control's id that identifies the GPU: "nvml:0" of "nvml:0/energy"; "processor" for all of
/// the CPU's.
std::string gpu_of(const std::string& id) {
  return id.starts_with("rapl") || id == "cpufreq" ? "processor" : id.substr(0, id.find('/'));
}

/// The control to use: the named one, else the only usable one (of the GPU whose sensor was named); null with `why_not`
/// if none is usable. Throws UserError if the named one is unusable or several remain.
std::unique_ptr<Control> choose_control(const ProgramSearch& search, std::vector<std::string>& why_not) {
  if (search.control) {
    std::string why;
    auto control = usable_control(*search.control, &why);
    if (!control) throw UserError(why);
    return control;
  }
  if (controls_forbidden()) {
    why_not.push_back("controls are forbidden here (ERGOTUNE_FORBID_CONTROLS is set)");
    return nullptr;
  }
  std::vector<std::unique_ptr<Control>> usable;
  for (const std::string& id : list_controls()) {
    std::string why;
    try {
      auto control = usable_control(id, &why);
      const bool wanted =
          search.setup.run.sensors.empty() ||
          std::ranges::any_of(search.setup.run.sensors, [&](const auto& s) { return gpu_of(s) == gpu_of(id); });
      if (control && wanted) usable.push_back(std::move(control));
    } catch (const UserError& error) {
      why = error.what();
    }
    if (!why.empty()) why_not.push_back(why);
  }
  if (usable.size() > 1) {
    std::vector<std::string> ids;
    for (const auto& control : usable) ids.push_back(control->id());
    throw UserError(fmt::format("clocks can be set through {}: name with --control those that the program depends on",
                                fmt::join(ids, " and ")));
  }
  if (usable.empty() && why_not.empty())
    why_not.push_back("there is no clock or power limit here that could be set (\"ergotune clocks status\")");
  return usable.empty() ? nullptr : std::move(usable.front());
}

/// The parameter to search: the core clock, else the power limit.
std::optional<ExecutionParameterSpec> what_to_set(Control& control) {
  ExecutionParameterSpec spec;
  if (control.range(ControlQuantity::core_clock_mhz).supported) {
    spec.kind = ParameterKind::core_clock_mhz;
    spec.choice = ExecutionParameterSpec::Choice::all;
    if (control.range(ControlQuantity::core_clock_mhz).values.empty()) {
      spec.choice = ExecutionParameterSpec::Choice::equidistant;
      spec.count = 33;
    }
    return spec;
  }
  if (!control.range(ControlQuantity::power_limit_w).supported) return std::nullopt;
  spec.kind = ParameterKind::power_limit_w;
  spec.choice = ExecutionParameterSpec::Choice::equidistant;
  spec.count = 17;
  return spec;
}

/// Whether a sensor measures this program's energy: that of the control's GPU, of the CPU, or of the only GPU, which is
/// then added to the sensors.
bool has_sensor(ProgramSearch& search, const Control* control, std::vector<std::string>& why_not) {
  if (!search.setup.run.sensors.empty() || (control && control->id() != "cpufreq")) return true;
  std::vector<std::string> looked_for;
  if (!sensors_for_device({}, {}, true, &looked_for).empty()) return true;
  std::set<std::string> gpus;
  for (const SensorInfo& sensor : list_sensors())
    if (sensor.scope == SensorScope::gpu && !control) gpus.insert(gpu_of(sensor.id));
  if (gpus.size() == 1) {
    search.setup.run.sensors.push_back(*gpus.begin());
    return true;
  }
  if (!gpus.empty())
    why_not.push_back(
        fmt::format("energy can be read of {}: name with --sensor those that the program uses", fmt::join(gpus, ", ")));
  else
    why_not.push_back("no sensor of energy can be read here");
  why_not.insert(why_not.end(), looked_for.begin(), looked_for.end());
  return false;
}

/// The option of `ergotune clocks set` for a quantity.
std::string option_of(const std::string& parameter) {
  return parameter == "power_limit_w" ? "--power-limit" : "--core-clock";
}

/// The program on all nodes: `ergotune clocks set` puts one setting into force on them, and `ergotune energy` adds up
/// their energies while the tasks run. What both need to start their agents is not part of the time.
void run_on_nodes(Problem& problem, const ProgramSearch& search, const Parameter& setting) {
  const std::vector<std::string>& worker = search.setup.worker_command;  // ends with its verb
  const std::string own = worker.empty() ? own_program() : worker.front();
  std::vector<std::string> energy{own, "energy"}, clocks{own, "clocks", "set"};
  for (auto* words : {&energy, &clocks})
    words->insert(words->end(), search.node_options.begin(), search.node_options.end());
  for (const std::string& sensor : search.setup.run.sensors) energy.insert(energy.end(), {"--sensor", sensor});
  if (search.control) clocks.insert(clocks.end(), {"--control", *search.control});
  if (search.setup.take_over) clocks.push_back("--take-over");
  const auto escaped = [](const std::vector<std::string>& words) {
    return literal_template(shell_command(words)).text();
  };
  const std::string report = "\"{{run}}/energy.json\"";
  auto program = std::make_shared<Program>(*problem.program);
  program->command = {literal_template("sh"), literal_template("-c"),
                      Template::parse(fmt::format("{} -o {} -- {} {} {{{{{}}}}} -- {} && cat {}", escaped(energy),
                                                  report, escaped(clocks), option_of(setting.name), setting.name,
                                                  escaped(search.command), report))};
  // Of the sum, not of one node or sensor, whose lines are indented further.
  program->output = {{"energy", R"re(^  "joules": ([0-9.e+-]+))re"},
                     {"energy_of_node", R"re(^    "([^"]+)": ([0-9.e+-]+),?$)re"},
                     {"time", R"re(^  "seconds": ([0-9.e+-]+))re"}};
  problem.program = std::move(program);
  problem.parameters.push_back(setting);
}

Problem problem_of_command(const ProgramSearch& search) {
  Problem problem;
  problem.name = std::filesystem::path(search.command.front()).filename().string();
  problem.file = std::filesystem::current_path() / "program";  // its folder is where the command is given
  auto program = std::make_shared<Program>();
  for (const std::string& word : search.command) program->command.push_back(literal_template(word));
  program->time_limit = search.time_limit;
  problem.program = program;
  problem.kernel().function = literal_template(problem.name);
  problem.verification.kind = Verification::Kind::none;
  // A space needs a parameter: use one that names the program.
  Parameter what;
  what.name = "program";
  what.values = {Value(problem.name)};
  problem.parameters.push_back(std::move(what));
  return problem;
}

/// Prepares the session and passes on its notes.
PreparedSession prepared_for(const ProgramSearch& search, Problem problem, const std::string& about = {}) {
  PreparedSession prepared = prepare_session(std::move(problem), search.setup);
  if (!search.setup.notify) return prepared;
  if (!about.empty()) search.setup.notify(about);
  for (const std::string& note : prepared.notes) search.setup.notify("note: " + note);
  return prepared;
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

}  // namespace

ProgramFinding search_program(ProgramSearch search) {
  if (search.command.empty()) throw UserError("a program is a list of its name and its arguments");
  if (!search.wisdom.empty() && search.setup.run.store.empty())
    throw UserError("wisdom is written from what is stored; let results be kept in a store");
  if (search.options.most < 2) throw UserError("settings: two are the least that can be compared");
  ProgramFinding finding;
  finding.command = search.command;
  finding.node_options = search.node_options;
  finding.max_slowdown = search.options.max_slowdown;
  std::unique_ptr<Control> control = choose_control(search, finding.why_not);
  Problem problem = problem_of_command(search);
  const auto spec = control ? what_to_set(*control) : std::nullopt;
  if (control && !spec)
    finding.why_not.push_back(fmt::format("{} sets neither a core clock nor a power limit", control->id()));
  const bool on_nodes = !search.node_options.empty();
  search.setup.energy = on_nodes || has_sensor(search, control.get(), finding.why_not);
  if (on_nodes && !spec)
    throw UserError(fmt::format(
        "the settings of the nodes are those of this machine, which can set none; start this on one of them: {}",
        fmt::join(finding.why_not, "; ")));
  std::optional<WisdomDevice> device;
  if (!search.wisdom.empty() && control) {  // refuses here what could not be written after hours
    refuse_unwritable(search.wisdom);
    device = devices_of(*control).front();
  }
  if (!spec || !search.setup.energy) {
    problem.objective.text = search.setup.energy ? "energy" : "time";
    PreparedSession prepared = prepared_for(search, std::move(problem));
    finding.measured = measure_one(prepared, 0).measurement;
    return finding;
  }
  finding.control = control->id();
  problem.objective = setting_objective(finding.max_slowdown);
  if (on_nodes) {
    run_on_nodes(problem, search, make_execution_parameter(*spec, control->range(*quantity_of(spec->kind))));
    search.setup.run.sensors.clear();  // those of the nodes are read there
  } else {
    problem.execution_parameters = {*spec};
    search.setup.run.controls = {finding.control};
  }
  PreparedSession prepared = prepared_for(
      search, std::move(problem),
      fmt::format("Running {} at up to {} {} through {}", fmt::join(search.command, " "), search.options.most,
                  spec->kind == ParameterKind::power_limit_w ? "power limits in W" : "core clocks in MHz",
                  finding.control));
  search.options.first = std::min(search.options.first, search.options.most);
  search.options.interrupted = search.setup.interrupted;
  finding.choice = choose_setting(prepared, search.options);
  finding.notes = prepared.notes;
  if (device && finding.choice->best) {
    // as a setting of the device that it is set on: a program's session is the machine's
    auto wisdom = wisdom_of(prepared.store->file(), prepared.store_session, std::nullopt);
    for (auto& [program, records] : wisdom)
      for (WisdomRecord& record : records) record.device = *device;
    write_wisdom(search.wisdom, wisdom);
    finding.wisdom = search.wisdom;
  }
  return finding;
}

std::string ProgramFinding::run_with() const {
  std::vector<std::string> words{"ergotune", "clocks", "set", "--control", control};
  words.insert(words.end(), node_options.begin(), node_options.end());
  if (!wisdom.empty())
    words.insert(words.end(), {"--wisdom", wisdom});
  else
    words.insert(words.end(), {option_of(choice->name), fmt::format("{:g}", *choice->best)});
  return shell_command(words) + " -- " + shell_command(command);
}

std::vector<std::string> ProgramFinding::set_with() const {
  if (!node_options.empty()) return {};  // those below are for one machine
  const double setting = *choice->best;
  const bool clock = choice->name == "core_clock_mhz";
  if (control.starts_with("nvml:")) {
    const std::string gpu = control.substr(5);
    if (!clock) return {fmt::format("nvidia-smi -i {} --power-limit={:g}", gpu, setting)};
    return {fmt::format("nvidia-smi -i {0} --lock-gpu-clocks={1:g},{1:g}", gpu, setting),
            fmt::format("nvidia-smi -i {} --reset-gpu-clocks", gpu)};
  }
  if (control == "cpufreq" && clock)
    return {fmt::format("cpupower frequency-set --min {0:g}MHz --max {0:g}MHz", setting)};
  return {};
}

Json program_document(const ProgramFinding& finding) {
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
  document["run_with"] = choice.best ? Json(finding.run_with()) : Json(nullptr);
  document["set_with"] = choice.best ? Json(finding.set_with()) : Json::array();
  document["notes"] = finding.notes;
  document["stopped_because"] = choice.stopped_because;
  return document;
}

}  // namespace ergotune
