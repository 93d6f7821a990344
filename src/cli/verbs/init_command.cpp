// ergotune init: drafts a problem file from a kernel's source.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/files.hpp"
#include "cli/command.hpp"
#include "device/backend.hpp"
#include "device/device.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "problem/draft/problem_draft.hpp"

namespace ergotune::cli {
namespace {

bool runs_here(const Problem& problem) {
  const auto devices = list_devices();
  return std::ranges::any_of(devices,
                             [&](const DeviceInfo& info) { return has_source_for(problem.kernel(), info.backend); });
}

/// The next useful command on this machine: without a GPU, a look at the search space, with compilation if NVRTC is
/// installed.
std::string next_command(const std::string& file, const Problem& problem) {
  if (std::ranges::all_of(problem.parameters, [](const Parameter& parameter) { return parameter.values.size() < 2; }))
    return "nothing can be tuned yet: do the first CHECK, then run init again with --force";
  if (runs_here(problem)) return "ergotune tune " + file;
  if (!problem.kernel().source_for(Language::cuda)) return fmt::format("ergotune space {} --profile mi250x", file);
  try {
    (void)open_compiler("cuda:sm_90");
    return fmt::format("ergotune space {} --profile h100 --compile 10", file);
  } catch (const Error&) {
    return fmt::format("ergotune space {} --profile h100", file);
  }
}

}  // namespace

void add_init_command(Verb app) {
  struct Options {
    std::string source, host, kernel, output;
    std::vector<std::string> includes;
    bool json = false, force = false;
  };
  auto options = std::make_shared<Options>();
  Verb verb = app.add_verb("init", "Write a first problem file for a kernel, from its source");
  verb.add_option("source", options->source, "The kernel's source: .cu, .cuh, .hip, .cl, .c or .cpp").required();
  verb.add_option("host", options->host,
                  "The program that launches it (C, C++ or Python), for sizes, block and grid: main.c, run.py");
  verb.add_option("-I,--include", options->includes, "A folder with headers of the source; may be repeated");
  verb.add_option("--kernel", options->kernel, "The kernel, where the source has several");
  verb.add_option("-o,--output", options->output,
                  "Problem file to write (default: the source's name with .toml; -: standard output)");
  verb.add_flag("--force", options->force, "Replace the problem file where it exists");
  add_json_option(verb, options->json);
  verb.footer(
      "What it had to guess is marked CHECK in the file and listed.\n"
      "Examples:\n"
      "  ergotune init kernel.cu\n"
      "  ergotune init kernel.cl run.py\n"
      "In Python: ergotune.draft_problem(\"kernel.cu\")");
  verb.callback([options] {
    const std::filesystem::path source = options->source;
    std::filesystem::path output = options->output;
    if (output.empty()) output = std::filesystem::path(source).replace_extension(".toml");
    if (options->json && output == "-") throw UserError("--json needs -o FILE: both would write to standard output");
    const ProblemDraft draft = draft_problem(source, options->kernel, output == "-" ? "." : output.parent_path(),
                                             options->host, {options->includes.begin(), options->includes.end()});
    std::string next;
    if (output != "-" && !options->force && std::filesystem::exists(output))
      throw UserError(fmt::format("{} exists: --force replaces it, -o FILE writes another", output.string()));
    try {
      next = next_command(output.string(), parse_problem(draft.text, output));
    } catch (const UserError& error) {
      throw Error(
          fmt::format("{}- {}\n\nThis draft is not a valid problem file, which is a defect of \"ergotune init\"; "
                      "nothing was written: {}",
                      draft.text, fmt::join(draft.questions, "\n- "), error.what()));
    }
    if (output == "-")
      fmt::print("{}", draft.text);
    else
      write_named_file(output, draft.text);
    if (options->json)
      return print_json({{"problem", output.string()}, {"kernel", draft.kernel}, {"questions", draft.questions}});
    std::FILE* stream = output == "-" ? stderr : stdout;
    if (output != "-")
      fmt::print(stream, "Wrote {}: a first problem file for the kernel {}.\n", output.string(), draft.kernel);
    if (!draft.questions.empty()) fmt::print(stream, "\nPlease check:\n");
    for (const std::string& question : draft.questions) fmt::print(stream, "  - {}\n", question);
    if (output != "-") fmt::print(stream, "\nNext: {}\n", next);
  });
}

}  // namespace ergotune::cli
