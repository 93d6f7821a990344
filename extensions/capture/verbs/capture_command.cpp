// ergotune capture: a launch of an unmodified program, with its data, as a problem.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/json_text.hpp"
#include "capture/capture_folder.hpp"
#include "capture/verbs/watched_program.hpp"
#include "cli/command.hpp"
#include "cli/output/progress.hpp"
#include "cli/output/table.hpp"
#include "device/backend.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "kernel/configure.hpp"
#include "problem/files/source_text.hpp"

namespace ergotune::cli {

namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct CaptureArguments {
  std::string kernel, output = "captured", source;
  std::uint64_t skip = 0, max_memory = 1024;
  bool list = false, all = false, rounding = false, force = false, json = false;
};

struct SeenKernel {
  std::string name, hash, options, shape, arguments, refusal;
  std::uint64_t launches = 0, timed = 0;
  double seconds = 0;
  /// Folder as the library wrote it, then as the user finds it; empty when no launch was captured.
  std::string folder;
  std::vector<std::string> notes;
};

/// What the libraries in the program said.
struct Seen {
  std::set<std::string> interfaces;
  /// By name, source and options: processes of one program that do the same are counted together.
  std::map<std::string, SeenKernel> kernels;
  std::map<std::string, capture::Message> reports;  ///< the last by process and kernel

  SeenKernel& kernel(const std::string& name, const std::string& hash, const std::string& options) {
    SeenKernel& seen = kernels[name + '\n' + hash + '\n' + options];
    seen.name = name;
    seen.hash = hash;
    seen.options = options;
    return seen;
  }
};

double number(const std::string& text) { return std::strtod(text.c_str(), nullptr); }

void note_report(Seen& seen, const capture::Message& m) {
  SeenKernel& kernel = seen.kernel(m[2], m[3], m[4]);
  capture::Message& last = seen.reports[m[1] + '\n' + m[2] + '\n' + m[3] + '\n' + m[4]];
  const auto newly = [&](std::size_t field) { return number(m[field]) - (last.empty() ? 0 : number(last[field])); };
  kernel.launches += static_cast<std::uint64_t>(newly(5));
  kernel.timed += static_cast<std::uint64_t>(newly(6));
  kernel.seconds += newly(7) / 1e9;
  kernel.shape = m[8];
  kernel.arguments = m[9];
  if (kernel.folder.empty()) kernel.refusal = m[10];
  last = m;
}

capture::Message answer(Seen& seen, const CaptureArguments& arguments, const std::string& folder,
                        const capture::Message& m) {
  if (m[0] == "hello" && m.size() > 2) {
    seen.interfaces.insert(m[2]);
    return {"wishes",
            capture::kProtocol,
            arguments.list ? "list" : "capture",
            arguments.kernel,
            std::to_string(arguments.skip),
            folder,
            std::to_string(arguments.max_memory << 20),
            arguments.rounding ? "1" : "0",
            arguments.source.empty() ? "" : fs::absolute(arguments.source).string()};
  }
  if (m[0] == "note" && m.size() == 2) fmt::print(stderr, "note: {}\n", m[1]);
  if (m[0] == "kernel" && m.size() == 11) note_report(seen, m);
  if (m[0] == "captured" && m.size() >= 6) {
    SeenKernel& kernel = seen.kernel(m[1], m[2], m[3]);
    kernel.folder = m[4];
    kernel.refusal.clear();
    kernel.notes.assign(m.begin() + 6, m.end());
  }
  return {};
}

/// Kernels with the most time first; those without times by launches.
std::vector<SeenKernel*> by_time(Seen& seen) {
  std::vector<SeenKernel*> kernels;
  for (auto& [key, kernel] : seen.kernels) kernels.push_back(&kernel);
  std::ranges::sort(kernels, [](const SeenKernel* a, const SeenKernel* b) {
    return a->seconds != b->seconds ? a->seconds > b->seconds : a->launches > b->launches;
  });
  return kernels;
}

/// What is known of a capture beside its problem: how `ergotune run` knows the kernel again.
void write_record(const SeenKernel& kernel, const std::vector<std::string>& program, const fs::path& folder) {
  const Json record{{"ergotune_capture", 1},      {"kernel", kernel.name},
                    {"source_hash", kernel.hash}, {"options", kernel.options},
                    {"geometry", kernel.shape},   {"launches", kernel.launches},
                    {"program", program},         {"captured_at", iso_time(wall_seconds())}};
  write_named_file(folder / kCaptureRecord, json_text(record, 2) + "\n");
}

/// A folder for a kernel that no other of this program has; `replaces`: an older capture's may be taken.
std::string folder_name(const std::string& kernel, const fs::path& output, bool replaces,
                        std::set<std::string>& taken) {
  std::string name;
  for (const char c : kernel) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  name = name.substr(0, 80);
  const auto may_be = [&](const std::string& folder) {
    return !fs::exists(output / folder) || (replaces && fs::exists(output / folder / kCaptureRecord));
  };
  std::string free = name;
  for (int i = 2; taken.contains(free) || !may_be(free); ++i) free = fmt::format("{}-{}", name, i);
  taken.insert(free);
  return free;
}

/// Puts what was captured where the user wants it: the kernel with the most time in `output` itself, or each in a
/// folder.
std::vector<SeenKernel*> settle(Seen& seen, const CaptureArguments& arguments,
                                const std::vector<std::string>& program) {
  std::vector<SeenKernel*> settled;
  std::set<std::string> taken;
  const fs::path output = arguments.output;
  for (SeenKernel* kernel : by_time(seen)) {
    if (kernel->folder.empty()) continue;
    const fs::path from = kernel->folder;
    kernel->folder.clear();
    if (!arguments.all && !settled.empty()) continue;
    const fs::path to = arguments.all ? output / folder_name(kernel->name, output, arguments.force, taken) : output;
    write_record(*kernel, program, from);
    capture::move_capture(from, to);
    kernel->folder = to.string();
    settled.push_back(kernel);
  }
  return settled;
}

/// A name that leaves room for the rest of its line; --json has it whole.
std::string shortened(const std::string& name) {
  constexpr std::size_t kMost = 56;
  return name.size() <= kMost ? name : name.substr(0, kMost - 3) + "...";
}

void print_kernels(Seen& seen, bool timed) {
  Table table({"kernel", "launches", "time", "geometry of the first", ""});
  for (const SeenKernel* kernel : by_time(seen))
    table.add({shortened(kernel->name), fmt::format("{}", kernel->launches),
               kernel->timed ? human(kernel->seconds, "s")
               : timed       ? "?"
                             : "-",
               kernel->shape,
               !kernel->folder.empty()   ? "captured"
               : kernel->refusal.empty() ? ""
                                         : "cannot be captured: " + kernel->refusal});
  for (const std::size_t column : {0u, 3u, 4u}) table.align_left(column);
  fmt::print("{}", table.to_string(0, terminal_width()));
}

/// Whether its problem has more than one configuration.
bool is_tunable(const SeenKernel& kernel) {
  const Problem problem = load_problem(kernel.folder);
  return std::ranges::any_of(problem.parameters, [](const Parameter& p) { return p.values.size() > 1; });
}

Json document_of(Seen& seen, const std::vector<std::string>& program, const ProgramEnd& end) {
  Json kernels = Json::array(), captured = Json::array();
  for (const SeenKernel* kernel : by_time(seen)) {
    Json entry{{"kernel", kernel->name},
               {"launches", kernel->launches},
               {"seconds", kernel->timed ? Json(kernel->seconds) : Json(nullptr)},
               {"geometry", kernel->shape},
               {"arguments", kernel->arguments},
               {"options", kernel->options},
               {"source_hash", kernel->hash},
               {"captured", !kernel->folder.empty()}};
    if (!kernel->refusal.empty()) entry["cannot"] = kernel->refusal;
    kernels.push_back(entry);
    if (!kernel->folder.empty())
      captured.push_back({{"kernel", kernel->name},
                          {"problem", (fs::path(kernel->folder) / "problem.toml").string()},
                          {"notes", kernel->notes},
                          {"tunable", is_tunable(*kernel)}});
  }
  return {{"program", program},
          {"exit_code", end.exit_code},
          {"interfaces", seen.interfaces},
          {"kernels", kernels},
          {"captured", captured}};
}

/// Why there is nothing, and what to do.
std::string nothing_message(Seen& seen, const CaptureArguments& arguments) {
  if (seen.interfaces.empty())
    return "the program used neither OpenCL nor CUDA nor HIP; a program that opens a vendor's OpenCL itself, or is "
           "setuid, cannot be watched";
  if (seen.kernels.empty()) return "the program launched no kernel";
  std::set<std::string> names;
  bool matched = false;
  for (const auto& [key, kernel] : seen.kernels) {
    names.insert(kernel.name);
    matched |= !kernel.refusal.empty();
  }
  if (matched) {
    for (const SeenKernel* kernel : by_time(seen))
      if (!kernel->refusal.empty()) return fmt::format("{} cannot be captured: {}", kernel->name, kernel->refusal);
  }
  if (!arguments.kernel.empty() && !names.contains(arguments.kernel) &&
      arguments.kernel.find_first_of("*?[") == std::string::npos)
    return fmt::format("the program launched no kernel \"{}\"{}", arguments.kernel,
                       suggestion(arguments.kernel, std::vector<std::string>(names.begin(), names.end())));
  return fmt::format("no kernel that matches was launched more than {} times (--skip)", arguments.skip);
}

void print_captured(const std::vector<SeenKernel*>& captured) {
  const SeenKernel* next = nullptr;
  for (const SeenKernel* kernel : captured) {
    fmt::print("\ncaptured {} ({}) into {}\n", kernel->name, kernel->shape,
               (fs::path(kernel->folder) / "problem.toml").string());
    for (const std::string& note : kernel->notes) fmt::print("  note: {}\n", note);
    if (!is_tunable(*kernel))
      fmt::print(
          "  note: this kernel has one configuration: only clocks can be tuned ([execution] in its problem.toml), or "
          "parameters of your own\n");
    else if (!next)
      next = kernel;
  }
  if (next) fmt::print("next: ergotune tune {}\n", next->folder);
}

/// A source that the user names may hold code of the host, which is not for a compiler at run time.
void note_compilation(SeenKernel& kernel) {
  const Problem problem = load_problem(kernel.folder);
  const KernelSource& source = problem.kernel().sources.front();
  const device::Backend& backend = device::backend_named(to_string(source.language));
  const auto devices = backend.list(nullptr);
  if (devices.empty() || is_compiled_code(source.text)) return;
  const DeviceInfo& device = devices.front();
  try {
    const Constants constants = problem.constants_for(device.name, device.properties);
    (void)backend.open_compiler(device.id)->compile(
        make_compile_job(problem, problem.kernel(), device, constants, default_values(problem)));
  } catch (const Error& error) {
    kernel.notes.push_back(
        fmt::format("this source does not compile at run time; put code of the host inside #ifndef {}, and macros that "
                    "the program was compiled with into [kernel.options] of problem.toml: {}",
                    source.language == Language::hip ? "__HIPCC_RTC__" : "__CUDACC_RTC__", error.what()));
  }
}

void run(const CaptureArguments& arguments, const std::vector<std::string>& rest) {
  const std::vector<std::string> program = program_arguments(rest, "capture");
  const fs::path output = arguments.output;
  if (!arguments.list && !arguments.force && fs::exists(output / "problem.toml"))
    throw UserError("there is a capture already; --force replaces it, -o names another folder",
                    {(output / "problem.toml").string(), 0, 0});
  check_max_memory(arguments.max_memory);
  if (!arguments.source.empty() && !fs::is_regular_file(arguments.source))
    throw UserError("--source: there is no such file", {arguments.source, 0, 0});
  const fs::path room = fs::absolute(output) / ".capture";
  std::error_code failed;
  const bool fresh = !fs::exists(output, failed);
  if (!arguments.list) fs::create_directories(room, failed);
  if (!failed && fresh && !arguments.list)
    fs::permissions(output, fs::perms::owner_all, failed);  // data of the program lie in it
  if (failed) throw UserError(fmt::format("the folder {} cannot be made: {}", output.string(), failed.message()));
  Seen seen;
  WatchedProgram watched{program, layer_environment(), arguments.json, {}};
  watched.answer = [&](const capture::Message& message) { return answer(seen, arguments, room.string(), message); };
  ProgramEnd end;
  std::vector<SeenKernel*> captured;
  try {
    end = run_watched(watched);
    captured = settle(seen, arguments, program);
    if (!arguments.source.empty())
      for (SeenKernel* kernel : captured) note_compilation(*kernel);
  } catch (...) {
    fs::remove_all(room, failed);
    if (fs::is_empty(output, failed)) fs::remove(output, failed);
    throw;
  }
  if (!arguments.list) fs::remove_all(room, failed);
  if (!arguments.list && fs::is_empty(output, failed)) fs::remove(output, failed);
  if (const std::string description = description_of(end); !description.empty())
    fmt::print(stderr, "ergotune: {}\n", description);
  if (arguments.json) {
    print_json(document_of(seen, program, end));
  } else if (!seen.kernels.empty()) {
    print_kernels(seen, arguments.kernel.empty());
    print_captured(captured);
  }
  const bool nothing = arguments.list ? seen.kernels.empty() : captured.empty();
  if (nothing) fmt::print(stderr, "ergotune: {}\n", nothing_message(seen, arguments));
  if (end.exit_code != 0) throw Exit{end.exit_code};
  if (nothing) throw Exit{kNoAnswer};
}

}  // namespace

void add_capture_command(Verb app) {
  auto verb = app.add_verb("capture",
                           "Take a kernel's launch out of an unmodified program, with its data, as a problem to tune");
  auto arguments = std::make_shared<CaptureArguments>();
  verb.add_option("--kernel", arguments->kernel,
                  "The kernel, or a pattern (\"gemm*\"); else the one with the most time on the device");
  verb.add_option("--skip", arguments->skip, "Launches of it to pass over");
  verb.add_option("-o,--output", arguments->output, "Folder for problem.toml, source and data").show_default();
  verb.add_option("--max-memory", arguments->max_memory, "MiB of buffers of one launch at most").show_default();
  verb.add_option("--source", arguments->source,
                  "The kernel's source, where the program was compiled by nvcc or hipcc: it is compiled at run time");
  verb.add_flag("--list", arguments->list, "Only list the kernels that are launched, how often and for how long");
  verb.add_flag("--all", arguments->all, "Each kernel that can be captured, in a folder of its own");
  verb.add_flag("--fast-math", arguments->rounding,
                "Make parameters of compiler options that change rounding (OpenCL)");
  verb.add_flag("--force", arguments->force, "Replace what was captured before");
  add_json_option(verb, arguments->json);
  verb.footer(
      "The program runs once. With --json its standard output goes to standard error.\n"
      "Example: ergotune capture --kernel scale -o captured -- ./app\n"
      "         ergotune tune captured\n"
      "In Python: the command only, because it starts and watches another program");
  verb.keep_rest();
  verb.callback([arguments, verb] { run(*arguments, verb.rest()); });
}

}  // namespace ergotune::cli
