// ergotune program: searches the clock or power limit at which any program needs the least energy.
#include "program/verbs/program_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "api/wisdom_records.hpp"
#include "base/process/process.hpp"
#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/companions.hpp"
#include "cli/hold_settings.hpp"
#include "cli/interruption.hpp"
#include "cli/output/progress.hpp"
#include "cli/run_here.hpp"
#include "ergotune/error.hpp"
#include "measure/execution_parameters.hpp"
#include "power/controls/control.hpp"
#include "power/sensors/sensor.hpp"
#include "problem/program.hpp"
#include "tune/session/measure_one.hpp"

namespace ergotune::cli {

void add_program_command(Verb app);
namespace {

struct ProgramArguments : NodeOptions {
  std::vector<std::string> command, sensors;
  std::string slowdown = "5%";
  std::optional<std::string> control, store, wisdom;
  double time_limit = 3600, precision = 0, seconds = 0;
  int most = 12;
  bool no_store = false, no_resume = false, take_over = false, quiet = false, json = false;
};

/// Parses "5%" or "0.05".
double share_of(std::string text) {
  const bool percent = text.ends_with('%');
  if (percent) text.pop_back();
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && rest == text.data() + text.size() && std::isfinite(number) && number >= 0;
  if (!whole) throw UserError(fmt::format("--max-slowdown: \"{}\" is not a share; write 5% or 0.05", text));
  if (!percent && number >= 1)
    throw UserError(
        fmt::format("--max-slowdown: {0} would be {1:g} %; write {0}% or a share such as 0.05", text, 100 * number));
  return percent ? number / 100 : number;
}

/// The part of a sensor's or control's id that identifies the GPU: "nvml:0" of "nvml:0/energy"; "processor" for all of
/// the CPU's.
std::string gpu_of(const std::string& id) {
  return id.starts_with("rapl") || id == "cpufreq" ? "processor" : id.substr(0, id.find('/'));
}

/// The control to use: the named one, else the only usable one (of the GPU whose sensor was named); null with `why_not`
/// if none is usable. Throws UserError if the named one is unusable or several remain.
std::unique_ptr<Control> choose_control(const ProgramArguments& arguments, std::vector<std::string>& why_not) {
  if (arguments.control) {
    std::string why;
    auto control = usable_control(*arguments.control, &why);
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
          arguments.sensors.empty() || std::any_of(arguments.sensors.begin(), arguments.sensors.end(),
                                                   [&](const auto& s) { return gpu_of(s) == gpu_of(id); });
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
/// then added to the arguments.
bool has_sensor(ProgramArguments& arguments, const Control* control, std::vector<std::string>& why_not) {
  if (!arguments.sensors.empty() || (control && control->id() != "cpufreq")) return true;
  std::vector<std::string> looked_for;
  if (!sensors_for_device({}, {}, true, &looked_for).empty()) return true;
  std::set<std::string> gpus;
  for (const SensorInfo& sensor : list_sensors())
    if (sensor.scope == SensorScope::gpu && !control) gpus.insert(gpu_of(sensor.id));
  if (gpus.size() == 1) {
    arguments.sensors.push_back(*gpus.begin());
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

Problem problem_of_command(const ProgramArguments& arguments) {
  Problem problem;
  problem.name = program_name(arguments.command);
  problem.file = std::filesystem::current_path() / "program";  // its folder is where the command is given
  auto program = std::make_shared<Program>();
  for (const std::string& word : arguments.command) program->command.push_back(literal_template(word));
  program->time_limit = arguments.time_limit;
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

SetupOptions setup_of(const ProgramArguments& arguments) {
  SetupOptions setup;
  setup.run.sensors = arguments.sensors;
  if (arguments.precision > 0) setup.run.precision = arguments.precision;
  if (arguments.seconds > 0) setup.run.max_seconds = arguments.seconds;
  setup.take_over = arguments.take_over;
  setup.run.store = arguments.no_store ? std::string() : arguments.store.value_or(kDefaultStore);
  setup.resume = !arguments.no_resume;
  setup.interrupted = interruption();
  setup.announce = [](const std::string& description) { fmt::print(stderr, "note: {}\n", description); };
  return setup;
}

/// Measures time and, if there is a sensor, energy of the program without changing settings.
void measure_only(const ProgramArguments& arguments, Problem problem, ProgramFinding finding, bool energy) {
  SetupOptions setup = setup_of(arguments);
  setup.energy = energy;
  problem.objective.text = energy ? "energy" : "time";
  PreparedSession prepared = prepare_session(std::move(problem), setup);
  if (!arguments.quiet)
    for (const std::string& note : prepared.notes) fmt::print(stderr, "note: {}\n", note);
  finding.measured = measure_one(prepared, 0).measurement;
  arguments.json ? print_json(document_of(finding)) : print_finding(finding);
  if (!usable(finding.measured->status)) throw Exit{kNoAnswer};
}

std::vector<std::string> node_options(const NodeOptions& nodes) {
  std::vector<std::string> options;
  for (const std::string& command : nodes.commands) options.insert(options.end(), {"--node-command", command});
  if (!nodes.nodes.empty()) options.insert(options.end(), {"--nodes", nodes.nodes});
  return options;
}

/// The program on all nodes: `ergotune clocks set` puts one setting into force on them, and `ergotune energy` adds up
/// their energies while the tasks run. What both need to start their agents is not part of the time.
void run_on_nodes(Problem& problem, const ProgramArguments& arguments, const Parameter& setting) {
  const std::vector<std::string> nodes = node_options(arguments);
  std::vector<std::string> energy{own_program(), "energy"}, clocks{own_program(), "clocks", "set"};
  for (auto* words : {&energy, &clocks}) words->insert(words->end(), nodes.begin(), nodes.end());
  for (const std::string& sensor : arguments.sensors) energy.insert(energy.end(), {"--sensor", sensor});
  if (arguments.control) clocks.insert(clocks.end(), {"--control", *arguments.control});
  if (arguments.take_over) clocks.push_back("--take-over");
  const auto escaped = [](const std::vector<std::string>& words) {
    return literal_template(shell_command(words)).text();
  };
  const std::string report = "\"{{run}}/energy.json\"";
  auto program = std::make_shared<Program>(*problem.program);
  program->command = {literal_template("sh"), literal_template("-c"),
                      Template::parse(fmt::format("{} -o {} -- {} {} {{{{{}}}}} -- {} && cat {}", escaped(energy),
                                                  report, escaped(clocks), option_of(setting.name), setting.name,
                                                  escaped(arguments.command), report))};
  // Of the sum, not of one node or sensor, whose lines are indented further.
  program->output = {{"energy", R"re(^  "joules": ([0-9.e+-]+))re"}, {"time", R"re(^  "seconds": ([0-9.e+-]+))re"}};
  problem.program = std::move(program);
  problem.parameters.push_back(setting);
}

/// Adds the setting to the wisdom, as one of the device that it is set on: a program's session is the machine's.
void write_setting(const ProgramArguments& arguments, const PreparedSession& prepared, const Control& control) {
  auto wisdom = wisdom_of(prepared.store->file(), prepared.store_session, std::nullopt);
  for (auto& [program, records] : wisdom)
    for (WisdomRecord& record : records) record.device = devices_of(control).front();
  write_wisdom(*arguments.wisdom, wisdom);
}

void search(const ProgramArguments& arguments, Problem problem, ProgramFinding finding, Control& control,
            const ExecutionParameterSpec& spec) {
  if (arguments.any())
    run_on_nodes(problem, arguments, make_execution_parameter(spec, control.range(*quantity_of(spec.kind))));
  else
    problem.execution_parameters = {spec};
  problem.objective = setting_objective(finding.max_slowdown);
  SetupOptions setup = setup_of(arguments);
  if (arguments.any())
    setup.run.sensors.clear();  // those of the nodes are read there
  else
    setup.run.controls = {arguments.control.value_or(control.id())};
  setup.energy = true;
  PreparedSession prepared = prepare_session(std::move(problem), setup);
  if (!arguments.quiet) {
    fmt::print(stderr, "Running {} at up to {} settings through {}\n", fmt::join(arguments.command, " "),
               arguments.most, finding.control);
    for (const std::string& note : prepared.notes) fmt::print(stderr, "note: {}\n", note);
  }
  SettingSearchOptions options;
  options.max_slowdown = finding.max_slowdown;
  options.most = static_cast<std::size_t>(std::max(arguments.most, 2));
  options.first = std::min<std::size_t>(options.first, options.most);
  options.interrupted = interruption();
  const std::string unit = spec.kind == ParameterKind::power_limit_w ? "W" : "MHz";
  if (!arguments.quiet) {
    options.progress = [&](double setting, const Measurement& m) {
      if (usable(m.status))
        fmt::print(stderr, "{:g} {}: {}, {}\n", setting, unit, with_interval(m, "time", {}),
                   with_interval(m, "energy", {}));
      else
        fmt::print(stderr, "{:g} {}: {}: {}\n", setting, unit, to_string(m.status), m.message);
    };
    options.confirming = [](double left) {
      fmt::print(stderr, "confirming the best beside the unchanged, about {} left\n", human_duration(left));
    };
  }
  finding.choice = choose_setting(prepared, options);
  finding.notes = prepared.notes;
  if (arguments.wisdom && finding.choice->best) {
    write_setting(arguments, prepared, control);
    finding.wisdom = *arguments.wisdom;
  }
  // Settings are restored before they are reported.
  prepared.evaluator.reset();
  arguments.json ? print_json(document_of(finding)) : print_finding(finding);
  if (!finding.choice->best) throw Exit{kNoAnswer};
}

void program(ProgramArguments arguments) {
  ProgramFinding finding;
  finding.command = arguments.command;
  finding.node_options = node_options(arguments);
  finding.max_slowdown = share_of(arguments.slowdown);
  if (arguments.wisdom && arguments.no_store)
    throw UserError("--wisdom is written from what is stored; leave out --no-store");
  if (arguments.most < 2) throw UserError("--settings: two are the least that can be compared");
  std::vector<std::string> why_not;
  std::unique_ptr<Control> control = choose_control(arguments, why_not);
  Problem problem = problem_of_command(arguments);
  const auto spec = control ? what_to_set(*control) : std::nullopt;
  if (control && !spec) why_not.push_back(fmt::format("{} sets neither a core clock nor a power limit", control->id()));
  const bool energy = arguments.any() || has_sensor(arguments, control.get(), why_not);
  finding.why_not = why_not;
  if (arguments.any() && !spec)
    throw UserError(
        fmt::format("the settings of the nodes are those of this machine, which can set none; start this on "
                    "one of them: {}",
                    fmt::join(why_not, "; ")));
  if (arguments.wisdom && control) {
    refuse_unwritable(*arguments.wisdom);
    (void)devices_of(*control);  // refuses here what could not be written after hours
  }
  if (!spec || !energy) return measure_only(arguments, std::move(problem), std::move(finding), energy);
  finding.control = control->id();
  search(arguments, std::move(problem), std::move(finding), *control, *spec);
}

}  // namespace

void add_program_command(Verb app) {
  auto arguments = std::make_shared<ProgramArguments>();
  Verb verb = app.add_verb("program", "Find the clock or power limit at which any program needs least energy");
  verb.add_option("PROGRAM", arguments->command, "The program and its arguments, after --").required().take_all();
  verb.add_option("--max-slowdown", arguments->slowdown, "How much longer it may take, as 5% or 0.05 (5%)");
  verb.add_option("--sensor", arguments->sensors,
                  "Energy by this sensor; repeatable, energies are added (the control's device, else the CPU, "
                  "else the only device)");
  verb.add_option("--control", arguments->control, "Set clocks or limits through this (the only one there is)");
  add_node_options(verb, *arguments, "One setting for, and the energy of,");
  verb.add_option("--settings", arguments->most, "Settings to try at most, before the best are confirmed (12)")
      .kind("NUMBER");
  verb.add_option("--precision", arguments->precision,
                  "Target half-width of the 95 % interval of time and energy (0.02)")
      .kind("NUMBER")
      .positive();
  verb.add_option("--max-seconds", arguments->seconds,
                  "Runs at one setting take this long at most, s, where three runs do (10)")
      .kind("NUMBER")
      .positive();
  verb.add_option("--time-limit", arguments->time_limit, "Seconds that one run may take (3600)")
      .kind("NUMBER")
      .positive();
  verb.add_option("--wisdom", arguments->wisdom,
                  "Folder: the setting is added to its wisdom, from which \"ergotune clocks set --wisdom\" takes it");
  verb.add_option("--store", arguments->store, "Where results are kept (ergotune.db)");
  verb.add_flag("--no-store", arguments->no_store, "Keep no results");
  verb.add_flag("--no-resume", arguments->no_resume, "Begin afresh even where results of this program are stored");
  verb.add_flag("--take-over", arguments->take_over, "Set clocks although another process seems to have locked them");
  verb.add_flag("-q,--quiet", arguments->quiet, "No progress and no notes");
  add_json_option(verb, arguments->json);
  verb.footer(
      "Examples:\n"
      "  ergotune program -- xz -k -c -9 big.tar\n"
      "  ergotune program --max-slowdown 10% --control nvml:0 -- ./simulate input.nml\n"
      "  ergotune program --nodes slurm -- srun --overlap ./simulate input.nml\n"
      "The program runs several times; what it writes it writes each time. Settings are restored however it ends. "
      "Without\n"
      "a clock or limit that can be set, time and energy of the program as it is are measured.");
  verb.callback([arguments] { program(*arguments); });
}

}  // namespace ergotune::cli
