// ergotune space: counts, samples, lists and explains the search space of a problem file.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "analysis/svg_chart.hpp"
#include "api/compile_check.hpp"
#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/json_text.hpp"
#include "cli/command.hpp"
#include "cli/live_options.hpp"
#include "cli/output/progress.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "evaluate/recorded/simulated.hpp"
#include "kernel/problem_notes.hpp"
#include "measure/execution_parameters.hpp"
#include "problem/tables/device_profile.hpp"
#include "report/result_document.hpp"
#include "report/size_sweep.hpp"
#include "store/result_set.hpp"

namespace ergotune::cli {
namespace {

using Json = nlohmann::ordered_json;

struct SpaceArguments {
  std::string file, device, profile, figure, compile;
  std::vector<std::string> set;
  std::uint64_t samples = 0, seed = 1;
  bool json = false, list = false, explain = false;
};

/// Prints configurations as JSON lines; the text of each value is formatted once.
class LinePrinter {
 public:
  explicit LinePrinter(const SearchSpace& space) : space_(space), positions_(space.dimensions()) {
    for (const auto& parameter : space.parameters()) {
      auto& texts = texts_.emplace_back();
      const std::string name = json_text(Json(parameter.name));
      for (const auto& value : parameter.values)
        texts.push_back(fmt::format("{}{}: {}", texts_.size() > 1 ? ", " : "{", name, json_text(to_json(value))));
    }
  }
  void print(ConfigurationIndex index) {
    space_.values_at(index, positions_);
    if (positions_.empty()) line_ += '{';
    for (std::size_t p = 0; p < positions_.size(); ++p) line_ += texts_[p][positions_[p]];
    line_ += "}\n";
    if (line_.size() > 1 << 16) flush();
  }
  void flush() {
    std::fwrite(line_.data(), 1, line_.size(), stdout);
    line_.clear();
  }

 private:
  const SearchSpace& space_;
  std::vector<std::uint32_t> positions_;
  std::vector<std::vector<std::string>> texts_;
  std::string line_;
};

const char* class_name(RestrictionClass restriction_class) {
  constexpr std::array kNames = {"correctness", "device_limit", "performance"};
  return kNames.at(static_cast<std::size_t>(restriction_class));
}

Json effect_json(const RestrictionEffect& effect) {
  return {{"label", effect.label},
          {"expression", effect.expression},
          {"class", class_name(effect.restriction_class)},
          {"removed_alone", effect.removed_alone},
          {"removed_only_by_it", effect.removed_only_by_it},
          {"redundant", effect.redundant}};
}

std::string on_one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n' || c == '\t';
    if (!space)
      line += c;
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
  }
  return line;
}

void print_effects(const std::vector<RestrictionEffect>& effects) {
  if (effects.empty()) {
    fmt::print("there are no restrictions\n");
    return;
  }
  const auto amount = [](double count) { return std::isnan(count) ? "not counted" : fmt::format("{:.10g}", count); };
  fmt::print("\n{:>14}  {:>14}  {:<12}  restriction\n", "removes alone", "only it does", "class");
  for (const auto& effect : effects)
    fmt::print("{:>14}  {:>14}  {:<12}  {}\n", amount(effect.removed_alone),
               effect.redundant ? "redundant" : amount(effect.removed_only_by_it), class_name(effect.restriction_class),
               effect.label == effect.expression || effect.expression.empty()
                   ? effect.label
                   : fmt::format("{} ({})", effect.label, on_one_line(effect.expression)));
}

void print_summary(const SearchSpace& space) {
  std::size_t width = 9;
  for (const auto& parameter : space.parameters()) width = std::max(width, parameter.name.size());
  for (const auto& parameter : space.parameters()) {
    std::string values;
    for (const auto& value : parameter.values) {
      if (values.size() > 60) {
        values += fmt::format(", ... {}", parameter.values.back().to_literal());
        break;
      }
      const bool* truth = std::get_if<bool>(&value.data());  // as problem files write it
      values += (values.empty() ? "" : ", ") + (truth == nullptr ? value.to_literal() : *truth ? "true" : "false");
    }
    fmt::print("{:<{}}  {:>5}  {}\n", parameter.name, width, parameter.values.size(), values);
  }
  fmt::print(
      "\ncartesian product  {:.6g}\nvalid              {}\nbuilt in           {:.3g} s\nmemory             {} bytes\n",
      space.cartesian_size(), space.size(), space.build_seconds(), space.memory_bytes());
}

void print_compiled(const SearchSpace& space, const CompileCheck& check) {
  std::size_t good = 0;
  std::vector<ConfigurationIndex> too_large;
  FailureGroups failures;
  for (std::size_t i = 0; i < check.configurations.size(); ++i) {
    const CompiledConfiguration& one = check.configurations[i];
    good += one.message.empty();
    if (!one.fits) too_large.push_back(one.index);
    if (!one.message.empty()) failures.add(i, Status::compile_error, one.message);
  }
  fmt::print("\n{} of {} configurations compile for {} ({}); nothing was run\n", good, check.configurations.size(),
             check.device.name, check.device.id);
  if (!too_large.empty())
    fmt::print(
        "{} need more threads or dynamic shared memory for a block, or more blocks, than the device has or "
        "__launch_bounds__ of the kernel permits, such as {}\n",
        too_large.size(), describe(space.parameters(), space.configuration(too_large.front())));
  for (const FailureGroup& failure : failures.list())
    fmt::print("\n{}{}:\n{}\n",
               describe(space.parameters(), space.configuration(check.configurations[failure.first].index)),
               failure.count > 1 ? " and " + counted(failure.count - 1, "other") : "", failure.message);
}

/// The clocks and limits that `tune` searches besides: "core_clock_mhz (7 values)"; their number depends on the device
/// unless the problem names it.
std::string settings_text(const std::vector<ExecutionParameterSpec>& specs) {
  using Choice = ExecutionParameterSpec::Choice;
  std::vector<std::string> texts;
  for (const ExecutionParameterSpec& spec : specs) {
    const auto quantity = quantity_of(spec.kind);
    const std::size_t count = spec.choice == Choice::list          ? spec.values.size()
                              : spec.choice == Choice::equidistant ? static_cast<std::size_t>(spec.count)
                                                                   : 0;
    texts.push_back(fmt::format("{} ({})", quantity ? to_string(*quantity) : "a setting",
                                count > 0 ? counted(count, "value") : "the device's values"));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// Clocks and limits as `tune` searches them, where a profile says which values there are. To compile, the code alone
/// counts.
void add_settings(Problem& problem, const SpaceArguments& arguments) {
  constexpr std::string_view kSimulated = "sim:";
  const bool modelled = std::ranges::any_of(problem.execution_parameters, [](const ExecutionParameterSpec& spec) {
    return spec.choice == ExecutionParameterSpec::Choice::model;
  });
  if (arguments.device.starts_with(kSimulated) && arguments.compile.empty() && !modelled)
    resolve_execution_parameters(problem, load_device_profile(arguments.device.substr(kSimulated.size())));
  if (!problem.execution_parameters.empty())
    fmt::print(stderr, "note: clocks and power limits are not counted, by whose values tune multiplies these: {}{}\n",
               settings_text(problem.execution_parameters),
               arguments.device.starts_with(kSimulated) ? "" : "; --profile NAME counts them");
}

/// How many configurations "10" and "all" are.
std::uint64_t count_of(const std::string& text, const SearchSpace& space) {
  if (text == "all") return space.size();
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count == 0)
    throw UserError(fmt::format("--compile {}: give the number of configurations, or all", text));
  return count;
}

CompileCheck compile(const SpaceArguments& arguments, const Problem& problem, const SearchSpace& space,
                     const DeviceLimits& limits) {
  ProgressPrinter printer(false, "", "");
  SessionProgress progress;
  progress.phase = "compiling";
  const double began = host_seconds();
  return check_compiling(problem, space, arguments.device, limits, count_of(arguments.compile, space), arguments.seed,
                         [&](const CompileCheck& so_far, std::uint64_t all) {
                           progress.evaluated = so_far.configurations.size();
                           progress.total = all;
                           progress.failed += !so_far.configurations.back().message.empty();
                           progress.seconds = host_seconds() - began;
                           progress.seconds_left = progress.seconds / static_cast<double>(progress.evaluated) *
                                                   static_cast<double>(all - progress.evaluated);
                           printer(progress);
                         });
}

void run(SpaceArguments arguments) {
  if (!arguments.device.empty() && !arguments.profile.empty())
    throw UserError("give --device or --profile, not both: each defines the limits");
  // a device that is not in this machine, as `tune` names it
  if (!arguments.profile.empty()) arguments.device = "sim:" + arguments.profile;
  Problem problem = load_problem(arguments.file);
  set_constants(problem, size_of(arguments.set));
  const DeviceLimits limits = limits_of(problem, arguments.device);
  if (arguments.device.empty() && !limits.name.empty())
    fmt::print(stderr, "note: with the limits of {}; --device or --profile names another\n", limits.name);
  add_settings(problem, arguments);
  const Constants constants = problem.constants_for(limits.name, limits.properties);
  const SearchSpace space = problem.build_space(constants);
  if (space.empty()) fmt::print(stderr, "ergotune: {}: {}\n", arguments.file, space.why_empty());

  std::vector<RestrictionEffect> effects;
  if (arguments.explain || !arguments.figure.empty()) effects = space.explain();
  if (!arguments.figure.empty()) write_named_file(arguments.figure, pruning_figure(space, effects));

  CompileCheck compiled;
  if (!arguments.compile.empty() && !space.empty()) compiled = compile(arguments, problem, space, limits);
  if (std::string note = note_of_default(problem, space, constants); !note.empty())
    compiled.notes.insert(compiled.notes.begin(), std::move(note));
  for (const std::string& note : compiled.notes) fmt::print(stderr, "note: {}\n", note);
  const auto end = [&] {
    if (space.empty()) throw Exit{kWrongInput};  // as tune
    if (!compiled.configurations.empty() && !compiled.any()) throw Exit{kNoAnswer};
  };
  Random random(arguments.seed);
  std::vector<ConfigurationIndex> sample;
  if (arguments.samples > 0 && !space.empty()) sample = space.sample_distinct(arguments.samples, random);
  if (arguments.json) {
    Json document;
    document["parameters"] = Json::array();
    for (const auto& parameter : space.parameters()) {
      Json values = Json::array();
      for (const auto& value : parameter.values) values.push_back(to_json(value));
      document["parameters"].push_back({{"name", parameter.name}, {"values", std::move(values)}});
    }
    document["cartesian"] = space.cartesian_size();
    if (space.cartesian_size() < 0x1p53) document["cartesian"] = static_cast<std::uint64_t>(space.cartesian_size());
    document["valid"] = space.size();
    document["build_seconds"] = space.build_seconds();
    document["memory_bytes"] = space.memory_bytes();
    document["materialised"] = space.materialised();
    if (!limits.name.empty()) document["device"] = limits.name;
    if (space.empty()) document["why_empty"] = space.why_empty();
    if (arguments.explain) {
      document["restrictions"] = Json::array();
      for (const auto& effect : effects) document["restrictions"].push_back(effect_json(effect));
    }
    if (arguments.samples > 0) {
      document["sample"] = Json::array();
      for (const auto index : sample)
        document["sample"].push_back(to_json(space.parameters(), space.configuration(index)));
    }
    if (arguments.list) {
      document["configurations"] = Json::array();
      for (ConfigurationIndex i = 0; i < space.size(); ++i)
        document["configurations"].push_back(to_json(space.parameters(), space.configuration(i)));
    }
    if (!arguments.compile.empty()) {
      document["compiled"] = compiled_document(space, compiled);
      document["notes"] = compiled.notes;
    }
    print_json(document);
    return end();
  }
  LinePrinter lines(space);
  for (const auto index : sample) lines.print(index);
  if (arguments.list)
    for (ConfigurationIndex i = 0; i < space.size(); ++i) lines.print(i);
  lines.flush();
  if (arguments.samples == 0 && !arguments.list) print_summary(space);
  if (arguments.explain) print_effects(effects);
  if (!compiled.configurations.empty()) print_compiled(space, compiled);
  end();
}

}  // namespace

void add_space_command(Verb app) {
  auto arguments = std::make_shared<SpaceArguments>();
  Verb verb = app.add_verb("space", "Show the search space of a problem file: size, samples, what restrictions do");
  verb.add_option("file", arguments->file, "Problem file: TOML, T1 JSON, or {\"tune_params\", \"restrictions\"} JSON")
      .required();
  verb.add_option("--device", arguments->device,
                  "Use the limits of this device, or of one that is not here by its profile, sim:h100 (default, where "
                  "limits are asked for: the best here)");
  verb.add_option("--profile", arguments->profile,
                  "The same as --device sim:PROFILE: a name (h100, k20x ...) or a file");
  add_set_option(verb, arguments->set);
  verb.add_option("--sample", arguments->samples,
                  "Print this many different configurations, uniformly random, as JSON lines");
  verb.add_option("--seed", arguments->seed, "Seed of the sample").show_default();
  verb.add_option("--compile", arguments->compile,
                  "Compile the default and others without running them, this many in all, or `all`: for the device, or "
                  "with --profile for an NVIDIA GPU that is not here (CUDA C++, NVRTC)");
  verb.add_flag("--list", arguments->list, "Print every configuration, in order, as JSON lines");
  verb.add_flag("--explain", arguments->explain, "Show how many configurations each restriction removes");
  verb.add_option("--figure", arguments->figure, "Write an SVG figure of what each restriction removes");
  add_json_option(verb, arguments->json);
  verb.footer(
      "Examples:\n"
      "  ergotune space gemm.toml --explain\n"
      "  ergotune space gemm.toml --figure restrictions.svg\n"
      "  ergotune space gemm.toml --list\n"
      "  ergotune space gemm.toml --profile h100 --compile 10\n"
      "  ergotune space gemm.toml --sample 1 --json\n"
      "  ergotune space gemm.toml --profile h100 --sample 2 --seed 7\n"
      "In Python: ergotune.SearchSpace(problem): its size, explain(), sample(), neighbours();\n"
      "with --compile ergotune.compile_check(problem, \"sim:h100\")");
  verb.callback([arguments] { run(*arguments); });
}

}  // namespace ergotune::cli
