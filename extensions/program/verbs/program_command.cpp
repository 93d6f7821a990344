// ergotune program: searches the clock or power limit at which any program needs the least energy.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "cli/command.hpp"
#include "cli/companions.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/table.hpp"
#include "cli/run_here.hpp"
#include "ergotune/error.hpp"
#include "program/program_search.hpp"
#include "program/supervisor.hpp"

namespace ergotune::cli {

namespace {

struct ProgramArguments : NodeOptions {
  ProgramSearch search;
  std::string slowdown = "5%";
  std::optional<std::string> store;
  int most = 12;
  bool no_store = false, no_resume = false, quiet = false, json = false;
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

std::string unit_of_setting(const SettingChoice& choice) { return choice.name == "power_limit_w" ? "W" : "MHz"; }

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
  fmt::print("\nRun with it:\n  {}\n", finding.run_with());
  const auto commands = finding.set_with();
  if (commands.empty()) return;
  fmt::print("Or set it for all (as root), and back again:\n");
  for (const std::string& command : commands) fmt::print("  {}\n", command);
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

void program(ProgramSearch search, const ProgramArguments& arguments) {
  search.options.max_slowdown = share_of(arguments.slowdown);
  for (const std::string& command : arguments.commands)
    search.node_options.insert(search.node_options.end(), {"--node-command", command});
  if (!arguments.nodes.empty()) search.node_options.insert(search.node_options.end(), {"--nodes", arguments.nodes});
  search.options.most = static_cast<std::size_t>(std::max(arguments.most, 0));
  search.setup.run.store = arguments.no_store ? std::string() : arguments.store.value_or(kDefaultStore);
  search.setup.resume = !arguments.no_resume;
  search.setup.interrupted = interruption();
  search.setup.announce = [](const std::string& description) { fmt::print(stderr, "note: {}\n", description); };
  if (!arguments.quiet) {
    search.setup.notify = [](const std::string& line) { fmt::print(stderr, "{}\n", line); };
    search.options.progress = [](double setting, const Measurement& m) {
      fmt::print(stderr, "{:g}: {}\n", setting,
                 usable(m.status) ? with_interval(m, "time", {}) + ", " + with_interval(m, "energy", {})
                                  : to_string(m.status) + ": " + m.message);
    };
    search.options.confirming = [](double left) {
      fmt::print(stderr, "confirming the best beside the unchanged, about {} left\n", human_duration(left));
    };
  }
  const ProgramFinding finding = search_program(std::move(search));
  arguments.json ? print_json(program_document(finding)) : print_finding(finding);
  if (!finding.has_answer()) throw Exit{kNoAnswer};
}

}  // namespace

void add_program_command(Verb app) {
  auto arguments = std::make_shared<ProgramArguments>();
  Verb verb = app.add_verb("program", "Find the clock or power limit at which any program needs least energy");
  verb.add_option("PROGRAM", arguments->search.command, "The program and its arguments, after --")
      .required()
      .take_all();
  verb.add_option("--max-slowdown", arguments->slowdown, "How much longer it may take, as 5% or 0.05 (5%)");
  verb.add_option("--sensor", arguments->search.setup.run.sensors,
                  "Energy by this sensor; repeatable, energies are added (the control's device, else the CPU, else the "
                  "only device)");
  verb.add_option("--control", arguments->search.control, "Set clocks or limits through this (the only one there is)");
  add_node_options(verb, *arguments, "One setting for, and the energy of,");
  verb.add_option("--settings", arguments->most, "Settings to try at most, before the best are confirmed (12)")
      .kind("NUMBER");
  verb.add_option("--precision", arguments->search.setup.run.precision,
                  "Target half-width of the 95 % interval of time and energy (0.02)")
      .kind("NUMBER")
      .positive();
  verb.add_option("--max-seconds", arguments->search.setup.run.max_seconds,
                  "Runs at one setting take this long at most, s, where three runs do (10)")
      .kind("NUMBER")
      .positive();
  verb.add_option("--time-limit", arguments->search.time_limit, "Seconds that one run may take (3600)")
      .kind("NUMBER")
      .positive();
  verb.add_option("--wisdom", arguments->search.wisdom,
                  "Folder: the setting is added to its wisdom, from which \"ergotune clocks set --wisdom\" takes it");
  verb.add_option("--store", arguments->store, "Where results are kept (ergotune.db)");
  verb.add_flag("--no-store", arguments->no_store, "Keep no results");
  verb.add_flag("--no-resume", arguments->no_resume, "Begin afresh even where results of this program are stored");
  verb.add_flag("--take-over", arguments->search.setup.take_over,
                "Set clocks although another process seems to have locked them");
  verb.add_flag("-q,--quiet", arguments->quiet, "No progress and no notes");
  add_json_option(verb, arguments->json);
  verb.footer(
      "Examples:\n"
      "  ergotune program -- xz -k -c -9 big.tar\n"
      "  ergotune program --max-slowdown 10% --control nvml:0 -- ./simulate input.nml\n"
      "  ergotune program --nodes slurm -- srun --overlap ./simulate input.nml\n"
      "The program runs several times; what it writes it writes each time. Settings are restored however it ends. "
      "Without\n"
      "a clock or limit that can be set, time and energy of the program as it is are measured.\n"
      "In Python: ergotune.program([\"./simulate\", \"input.nml\"], max_slowdown=0.05);\n"
      "code parameters of a program: ergotune.tune of a problem with [program]");
  verb.callback([arguments] { program(arguments->search, *arguments); });
}

/// The process that runs programs for a session and leaves no process of them behind. Started by the session.
void add_supervise_command(Verb app) {
  auto descriptor = std::make_shared<int>(-1);
  Verb verb = app.add_verb("supervise", "Run programs for a session (started by the session itself)");
  verb.hide();
  verb.add_option("--descriptor", *descriptor, "Socket to the session").required();
  verb.callback([descriptor] {
    if (const int code = run_supervisor(*descriptor); code != 0) throw Exit{code};
  });
}

}  // namespace ergotune::cli
