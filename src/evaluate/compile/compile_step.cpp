#include "evaluate/compile/compile_step.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <new>
#include <regex>
#include <string_view>

#include "base/clock.hpp"
#include "base/kernel_source/identifiers.hpp"
#include "base/kernel_source/outline.hpp"
#include "base/kernel_source/signature.hpp"
#include "device/entries.hpp"
#include "ergotune/problem.hpp"
#include "evaluate/live/machine_fault.hpp"
#include "kernel/configure.hpp"
#include "measure/code_restrictions.hpp"
#include "problem/files/source_text.hpp"

namespace ergotune {
namespace {

/// What the source shows of the function that the problem names.
struct NamedFunction {
  bool defined = false;
  bool kernel = false;              ///< by its marks, or possibly by a macro before its name
  bool device = false;              ///< __device__ or __host__
  std::string template_parameters;  ///< "typename T, int TILE"; empty: no template
  std::vector<std::string> kernels;
};

NamedFunction named_function(const CompileJob& job, const std::string& name) {
  const bool host = job.language == Language::c || job.language == Language::cpp;
  const kernel_source::Outline outline = kernel_source::outline_of(job.source);
  NamedFunction found;
  for (const kernel_source::Function& function : outline.functions) {
    const auto head = kernel_source::identifiers_in(function.head);
    const bool kernel = host ? !head.contains("static")
                             : head.contains("__global__") || head.contains("__kernel") || head.contains("kernel");
    if (kernel) found.kernels.push_back(function.name);
    if (function.name != name) continue;
    const auto in_head = [&](const std::string& macro) { return head.contains(macro); };
    found.defined = true;
    if (const std::size_t open = function.head.find('<'), close = function.head.find('>');
        function.head.starts_with("template") && open < close && close != std::string::npos)
      found.template_parameters = function.head.substr(open + 1, close - open - 1);
    found.device = found.device || head.contains("__device__") || head.contains("__host__");
    found.kernel = found.kernel || kernel || host ||
                   std::ranges::any_of(outline.macros, in_head, &kernel_source::Macro::name) ||
                   std::ranges::any_of(job.defines, in_head, &std::pair<std::string, std::string>::first);
  }
  return found;
}

bool has_includes(const CompileJob& job) {
  const std::string text = kernel_source::blank_comments(job.source);
  static const std::regex kInclude(R"(#[ \t]*include[ \t]*([<"]))");
  for (std::sregex_iterator it(text.begin(), text.end(), kInclude), end; it != end; ++it)
    if ((*it)[1] == "\"" || !job.include_folders.empty()) return true;
  return false;
}

/// Returns the name without template arguments and namespaces.
std::string plain_name(const CompileJob& job) {
  const std::string name = job.function.substr(0, job.function.find('<'));
  return name.substr(name.rfind(':') + 1);  // npos + 1 is 0
}

/// Found at once in every source that fits, so that nothing else is read of it.
bool contains_word(std::string_view text, std::string_view word) {
  const auto is_part = [&](std::size_t at) { return at < text.size() && kernel_source::in_identifier(text[at]); };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    if (!(at > 0 && is_part(at - 1)) && !is_part(at + word.size())) return true;
  return false;
}

/// Whether macros can add the function to the source.
bool macros_can_add(const CompileJob& job, const std::string& name) {
  const auto mentions = [&](const std::string& given) { return given.find(name) != std::string::npos; };
  return contains_word(job.source, name) || job.source.find("##") != std::string::npos ||
         std::ranges::any_of(job.options, mentions) ||
         std::ranges::any_of(job.defines, mentions, &std::pair<std::string, std::string>::second);
}

/// "f<float, {{TILE_SIZE}}>" for a template of "typename T, int TILE" and a parameter TILE_SIZE.
std::string example_of_instance(const CompileJob& job, const std::string& template_parameters) {
  std::vector<std::string> arguments;
  for (const kernel_source::Parameter& parameter : kernel_source::parameters_of(template_parameters, true)) {
    std::string name = parameter.name;
    for (const auto& [macro, value] : job.defines)
      if (macro.starts_with(parameter.name + "_")) name = macro;
    arguments.push_back(parameter.type == "typename" || parameter.type == "class" ? "float"
                                                                                  : fmt::format("{{{{{}}}}}", name));
  }
  return fmt::format("{}<{}>", job.function, fmt::join(arguments, ", "));
}

/// Returns why the job's function cannot be a kernel; empty if it can be one, with what macros and includes can add.
std::string why_no_kernel(const CompileJob& job) {
  if (job.language == Language::fortran || is_compiled_code(job.source)) return {};
  const std::string name = plain_name(job);
  const NamedFunction function = named_function(job, name);
  const std::string source = job.source_name.empty() ? "the source" : job.source_name;
  std::string reason;
  const bool gpu = job.language == Language::cuda || job.language == Language::hip;
  if (gpu && !function.template_parameters.empty() && job.function.find('<') == std::string::npos)
    return fmt::format("\"{}\" of {} is a template, whose arguments its name needs, as in function = \"{}\"",
                       job.function, source, example_of_instance(job, function.template_parameters));
  if (function.defined) {
    if (function.kernel || (!function.device && has_includes(job))) return {};
    reason = fmt::format("\"{}\" of {} is not a kernel", job.function, source);
  } else {
    // a source without recognised kernels is left to its compiler, such as one that a program registers
    if (function.kernels.empty() || macros_can_add(job, name) || has_includes(job)) return {};
    reason = fmt::format("{} has no function \"{}\"", source, job.function);
  }
  return fmt::format(
      "{}; correct \"function\" of the problem{}", reason,
      function.kernels.empty() ? "" : fmt::format(": the source has {}", fmt::join(function.kernels, ", ")));
}

}  // namespace

MismatchCheck::MismatchCheck(const Problem& problem) : defaults_(default_values(problem)) {
  for (const Kernel& kernel : problem.kernels) {
    auto& places = places_.emplace_back();
    for (const Argument& argument : kernel.arguments) places.push_back(argument.place);
  }
}

void MismatchCheck::operator()(std::size_t kernel, const Configuration& configuration, std::int64_t mismatch,
                               const std::string& message) const {
  if (mismatch == kFits || configuration.size() < defaults_.size() ||
      !std::equal(defaults_.begin(), defaults_.end(), configuration.begin()))
    return;
  const auto& places = places_.at(kernel);
  const auto argument = static_cast<std::size_t>(std::max<std::int64_t>(0, mismatch - kFunctionMismatch - 1));
  SourcePlace place = argument < places.size() ? places[argument] : SourcePlace();
  if (mismatch == kFunctionMismatch) place.line = place.column = 0;
  throw UserError(message, place);
}

CompileOutcome CompileStep::run(const std::function<CompileJob()>& make_job) {
  CompileOutcome outcome;
  const double started = host_seconds();
  std::optional<CompileJob> job;
  try {
    job = make_job();
  } catch (const std::exception& error) {
    // An expression or template has no value for this configuration.
    outcome.status = Status::compile_error;
    outcome.message = error.what();
  }
  if (job) compile(*job, outcome);
  outcome.seconds = host_seconds() - started;
  return outcome;
}

void CompileStep::compile(const CompileJob& job, CompileOutcome& outcome) {
  const auto mismatch = [&](const std::string& message, std::size_t argument) {
    outcome.status = Status::compile_error;
    outcome.message = message;
    outcome.mismatch = kFunctionMismatch + static_cast<std::int64_t>(argument);
  };
  if (!contains_word(job.source, plain_name(job)))  // a C compiler takes calls of functions that nothing declares
    if (const std::string reason = why_no_kernel(job); !reason.empty()) return mismatch(reason, 0);
  try {
    CachedCompiler::Outcome compiled = compiler_.compile(job);
    outcome.binary = std::move(compiled.binary);
    outcome.from_cache = compiled.from_cache;
  } catch (const device::Mismatch& error) {
    const std::string reason = error.argument() == 0 ? why_no_kernel(job) : std::string();
    mismatch(reason.empty() ? error.what() : reason, error.argument());
  } catch (const DeviceError& error) {
    if (error.fault() == DeviceFault::compile)
      if (const std::string reason = why_no_kernel(job); !reason.empty()) return mismatch(reason, 0);
    outcome.status = compile_status(error);
    outcome.message = error.what();
    throw_machine_fault(outcome.status, outcome.message, device_);
  } catch (const std::bad_alloc&) {
    outcome.status = Status::compile_error;
    outcome.message = "out of memory while compiling";
  }
}

}  // namespace ergotune
