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
#include "device/entries.hpp"
#include "ergotune/problem.hpp"
#include "evaluate/live/machine_fault.hpp"
#include "kernel/configure.hpp"
#include "measure/code_restrictions.hpp"
#include "problem/files/source_text.hpp"

namespace ergotune {
namespace {

/// Functions of the source that can be meant by the problem's "function".
std::vector<std::string> functions_in(const CompileJob& job) {
  const bool host = job.language == Language::c || job.language == Language::cpp;
  std::vector<std::string> names;
  for (const kernel_source::Function& function : kernel_source::outline_of(job.source).functions) {
    const auto words = kernel_source::identifiers_in(function.head);
    if (host ? !words.contains("static")
             : words.contains("__global__") || words.contains("__kernel") || words.contains("kernel"))
      names.push_back(function.name);
  }
  return names;
}

/// Found at once in every source that fits, so that nothing else is read of it.
bool contains_word(std::string_view text, std::string_view word) {
  const auto is_part = [&](std::size_t at) { return at < text.size() && kernel_source::in_identifier(text[at]); };
  for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1))
    if (!(at > 0 && is_part(at - 1)) && !is_part(at + word.size())) return true;
  return false;
}

/// Whether neither the source nor what it can become by macros and includes contains the function.
bool lacks_function(const CompileJob& job) {
  std::string name = job.function.substr(0, job.function.find('<'));
  name = name.substr(name.rfind(':') + 1);  // npos + 1 is 0
  if (job.language == Language::fortran || is_compiled_code(job.source) || contains_word(job.source, name))
    return false;
  // a source without functions that are recognised is left to its compiler, such as one that a program registers
  if (functions_in(job).empty() || job.source.find("##") != std::string::npos) return false;
  const std::string text = kernel_source::blank_comments(job.source);
  static const std::regex kInclude(R"(#[ \t]*include[ \t]*([<"]))");
  for (std::sregex_iterator it(text.begin(), text.end(), kInclude), end; it != end; ++it)
    if ((*it)[1] == "\"" || !job.include_folders.empty()) return false;
  const auto mentions = [&](const std::string& given) { return given.find(name) != std::string::npos; };
  return std::ranges::none_of(job.options, mentions) &&
         std::ranges::none_of(job.defines, [&](const auto& define) { return mentions(define.second); });
}

std::string no_function(const CompileJob& job) {
  const std::vector<std::string> names = functions_in(job);
  return fmt::format("{} has no function \"{}\"{}; correct \"function\" of the problem{}",
                     job.source_name.empty() ? "the source" : job.source_name, job.function,
                     suggestion(job.function, names),
                     names.empty() ? "" : fmt::format(": the source has {}", fmt::join(names, ", ")));
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
  if (lacks_function(job)) return mismatch(no_function(job), 0);
  try {
    CachedCompiler::Outcome compiled = compiler_.compile(job);
    outcome.binary = std::move(compiled.binary);
    outcome.from_cache = compiled.from_cache;
  } catch (const device::Mismatch& error) {
    mismatch(error.what(), error.argument());
  } catch (const DeviceError& error) {
    outcome.status = compile_status(error);
    outcome.message = error.what();
    throw_machine_fault(outcome.status, outcome.message, device_);
  } catch (const std::bad_alloc&) {
    outcome.status = Status::compile_error;
    outcome.message = "out of memory while compiling";
  }
}

}  // namespace ergotune
