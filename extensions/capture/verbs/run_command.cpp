// ergotune run: an unmodified program with its kernels in tuned configurations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/process/environment.hpp"
#include "capture/verbs/tuned_problems.hpp"
#include "capture/verbs/watched_program.hpp"
#include "cli/command.hpp"
#include "cli/hold_settings.hpp"
#include "ergotune/error.hpp"

namespace ergotune::cli {

namespace {

using Json = nlohmann::ordered_json;

struct RunArguments {
  std::string wisdom;
  std::vector<std::string> problems;
  std::optional<std::string> control;
  bool clocks = environment_variable("ERGOTUNE_CLOCKS") == "1", quiet = false, json = false;
  std::uint64_t max_memory = 1024;
};

/// What became of a program's launches.
struct Reported {
  std::set<std::string> interfaces;
  struct Used {
    std::string kernel, configuration, geometry;
    std::uint64_t launches = 0;
  };
  std::map<std::string, Used> used;
  std::map<std::string, std::string> left;  ///< by kernel: why
};

std::uint64_t number(const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); }

/// What is in force while the program runs.
struct Held {
  std::unique_ptr<ControlSession> session;  ///< null: nothing
  double core_clock_mhz = 0, clock_latency = 0;
  /// As the library in the program reads it; empty where a change of clock cannot pay.
  std::string clock_of(const ReplacementLaunch& given) const {
    const double latency = std::max(clock_latency, given.clock_latency);
    if (!session || core_clock_mhz <= 0 || latency <= 0 || given.clock_mhz <= 0) return {};
    return fmt::format("{} {} {} {}", given.clock_mhz, given.seconds, core_clock_mhz, latency);
  }
};

capture::Message answer_launch(TunedProblems& problems, Reported& reported, const Held& held,
                               const capture::Message& m) {
  RequestedLaunch requested{m[1], m[2], m[3], m[4], m[5], number(m[6]), {}, {}, number(m[13])};
  for (std::size_t d = 0; d < 3; ++d) {
    requested.global[d] = number(m[7 + d]);
    requested.block[d] = number(m[10 + d]);
  }
  const ReplacementLaunch given = problems.answer(requested);
  if (!given.use) {
    if (!given.description.empty()) reported.left[requested.kernel] = given.description;
    return {"leave", held.clock_of(given)};
  }
  capture::Message reply{"use", held.clock_of(given), given.description, given.source, given.options, given.function};
  for (const std::uint64_t size : given.global) reply.push_back(std::to_string(size));
  for (const std::uint64_t size : given.block) reply.push_back(std::to_string(size));
  reply.insert(reply.end(), {std::to_string(given.shared_bytes), fmt::format("{}", given.absolute_tolerance),
                             fmt::format("{}", given.relative_tolerance)});
  reply.push_back(fmt::format("{}", fmt::join(given.types, ",")));
  return reply;
}

capture::Message answer(TunedProblems& problems, Reported& reported, const Held& held, const RunArguments& arguments,
                        const capture::Message& m) {
  if (m[0] == "hello" && m.size() > 2) {
    reported.interfaces.insert(m[2]);
    return {"wishes", capture::kProtocol, "run", "", "0", "", std::to_string(arguments.max_memory << 20), "0", ""};
  }
  if (m[0] == "launch" && m.size() == 14) return answer_launch(problems, reported, held, m);
  // A value that the control or a policy refuses leaves the clock as it is: the program runs in either case.
  if (m[0] == "clock" && m.size() == 2 && held.session)
    (void)held.session->set(ControlQuantity::core_clock_mhz, std::strtod(m[1].c_str(), nullptr));
  if (m[0] == "used" && m.size() == 5) {
    Reported::Used& used = reported.used[m[1] + '\n' + m[2] + '\n' + m[3]];
    used = {m[1], m[2], m[3], used.launches + number(m[4])};
  }
  if (m[0] == "failed" && m.size() == 4) reported.left[m[1]] = fmt::format("{}: {}", m[2], m[3]);
  return {};
}

Json document_of(const Reported& reported, const std::vector<std::string>& program, const ProgramEnd& end,
                 const std::vector<std::string>& notes) {
  Json used = Json::array(), left = Json::array();
  for (const auto& [key, one] : reported.used)
    used.push_back({{"kernel", one.kernel},
                    {"configuration", one.configuration},
                    {"geometry", one.geometry},
                    {"launches", one.launches}});
  for (const auto& [kernel, why] : reported.left) left.push_back({{"kernel", kernel}, {"why", why}});
  return {{"program", program}, {"exit_code", end.exit_code}, {"tuned", used}, {"left", left}, {"notes", notes}};
}

void tell(const Reported& reported) {
  for (const auto& [key, one] : reported.used)
    fmt::print(stderr, "ergotune: {} ran tuned {}: {}, {}\n", one.kernel,
               one.launches == 1 ? "once" : fmt::format("{} times", one.launches), one.configuration, one.geometry);
  for (const auto& [kernel, why] : reported.left) fmt::print(stderr, "ergotune: {} ran as it is: {}\n", kernel, why);
  if (reported.interfaces.empty())
    fmt::print(stderr,
               "ergotune: the program ran as it is: it used neither OpenCL nor CUDA nor HIP, or opens a vendor's "
               "OpenCL itself\n");
  else if (reported.used.empty() && reported.left.empty())
    fmt::print(stderr, "ergotune: the program ran as it is: it launched none of the captured kernels\n");
}

/// Clocks and limits of the wisdom in force while this lives; nothing, with a note, where they cannot be.
Held apply_wisdom_clocks(const RunArguments& arguments, const std::vector<std::string>& program,
                         std::vector<std::string>& notes) {
  Held held;
  try {
    require_controls_allowed();
    auto control = chosen_control(arguments.control);
    const ControlSetting setting = setting_of_wisdom({arguments.wisdom}, *control);
    held.session = put_into_force(std::move(control), setting, false, fmt::format("\"{}\"", fmt::join(program, " ")));
    if (const auto core = setting.find(ControlQuantity::core_clock_mhz); core != setting.end()) {
      held.core_clock_mhz = core->second;
      held.clock_latency = seconds_until_core_clock(*held.session, core->second).value_or(0);
    }
  } catch (const UserError& error) {
    notes.push_back(fmt::format("clocks and limits are left as they are: {}", error.what()));
  }
  return held;
}

void run(const RunArguments& arguments, const std::vector<std::string>& rest) {
  const std::vector<std::string> program = program_arguments(rest, "run");
  check_max_memory(arguments.max_memory);
  TunedProblems problems(arguments.wisdom, arguments.problems);
  std::vector<std::string> notes = problems.notes();
  const Held held = arguments.clocks ? apply_wisdom_clocks(arguments, program, notes) : Held{};
  if (!arguments.quiet && !arguments.json)
    for (const std::string& note : notes) fmt::print(stderr, "note: {}\n", note);
  Reported reported;
  WatchedProgram watched{program, layer_environment(true), arguments.json, {}};
  watched.answer = [&](const capture::Message& message) {
    return answer(problems, reported, held, arguments, message);
  };
  const ProgramEnd end = run_watched(watched);
  if (const std::string message = description_of(end); !message.empty()) fmt::print(stderr, "ergotune: {}\n", message);
  if (arguments.json)
    print_json(document_of(reported, program, end, notes));
  else if (!arguments.quiet)
    tell(reported);
  if (end.exit_code != 0) throw Exit{end.exit_code};
}

}  // namespace

void add_run_command(Verb app) {
  auto verb = app.add_verb("run", "Run an unmodified program with its captured kernels in tuned configurations");
  auto arguments = std::make_shared<RunArguments>();
  verb.add_option("--wisdom", arguments->wisdom,
                  "Folder with wisdom (tune --wisdom) and captures, in it or in folders below it")
      .required();
  verb.add_option("--problem", arguments->problems, "A capture that lies elsewhere; repeatable").take_all();
  verb.add_flag("--clocks", arguments->clocks,
                "Put the clocks and limits of the wisdom into force while the program runs (ERGOTUNE_CLOCKS=1)");
  verb.add_option("--control", arguments->control, "Set them through this control (the only one there is)");
  verb.add_option("--max-memory", arguments->max_memory,
                  "MiB at most of a CUDA or HIP launch's memory that is copied to verify its replacement")
      .show_default();
  verb.add_flag("-q,--quiet", arguments->quiet, "Do not report which kernels were replaced");
  add_json_option(verb, arguments->json);
  verb.footer(
      "What is not known, or does not work, runs as the program has it. With --json the program's standard output goes "
      "to\n"
      "standard error.\n"
      "Examples:\n"
      "  ergotune run --wisdom captured -- ./app\n"
      "  ergotune run --wisdom captured --clocks -- ./app\n"
      "In Python: the command only, because it starts and watches another program");
  verb.keep_rest();
  verb.callback([arguments, verb] { run(*arguments, verb.rest()); });
}

}  // namespace ergotune::cli
