#include "kernel/configure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/text.hpp"
#include "device/backend.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "problem/address_field.hpp"
#include "problem/checks.hpp"
#include "problem/code_names.hpp"
#include "problem/files/includes.hpp"

namespace ergotune {
namespace {

std::string macro_text(const Value& value) {
  if (value.is_bool()) return value.truthy() ? "1" : "0";
  return value.to_string();
}

/// A template's text for a language: values as Python's str prints them, booleans as the language has them. Where it
/// has none that the preprocessor knows (C, OpenCL C, Fortran), as in macros.
std::string rendered(const Template& text, const Scope& scope, Language language) {
  const bool has_words = language == Language::cuda || language == Language::hip || language == Language::cpp;
  std::string result;
  std::size_t from = 0;
  for (const Expression& expression : text.expressions()) {
    const std::size_t open = text.text().find("{{", from);
    const Value value = expression.evaluate(scope);
    result += text.text().substr(from, open - from);
    result += value.is_bool() && has_words ? (value.truthy() ? "true" : "false") : macro_text(value);
    from = text.text().find("}}", open) + 2;
  }
  return result + text.text().substr(from);
}

std::uint32_t extent(const Expression& expression, const Scope& scope, const char* what) {
  const Value value = expression.evaluate(scope);
  std::int64_t size = 0;
  if (value.is_string())
    throw UserError(
        fmt::format("the {} size {} is {}; it must be a number", what, expression.text(), value.to_literal()),
        expression.place());
  if (value.is_real()) {
    // In Python's arithmetic, "n / block_size_x" is a real number even if it divides exactly.
    const double real = value.as_real();
    if (!(real >= 0) || real > 4294967295.0)
      size = -1;
    else
      size = static_cast<std::int64_t>(real + (1 - 1e-9));  // rounded up, since a part of a block needs a complete one
  } else {
    size = value.as_integer();
  }
  if (size < 1 || size > std::numeric_limits<std::uint32_t>::max()) {
    throw UserError(fmt::format("the {} size {} is {}; it must be between 1 and 4294967295", what, expression.text(),
                                value.to_string()),
                    expression.place());
  }
  return static_cast<std::uint32_t>(size);
}

}  // namespace

const Value* ConfigurationScope::find(std::string_view name) const {
  if (loops_) {
    if (const auto variable = loops_->find(name); variable != loops_->end()) return &variable->second;
  }
  const std::size_t count = std::min(parameters_->size(), values_->size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string& full = (*parameters_)[i].name;
    if (full == name) return &(*values_)[i];
    if (!kernel_.empty() && full.size() == kernel_.size() + 1 + name.size() && full.starts_with(kernel_) &&
        full[kernel_.size()] == '.' && full.ends_with(name))
      return &(*values_)[i];
  }
  const auto constant = constants_->find(name);
  return constant != constants_->end() ? &constant->second : nullptr;
}

std::string_view macro_name(const Kernel& kernel, const Parameter& parameter) {
  if (parameter.kind != ParameterKind::code) return {};
  const std::string_view name = parameter.name;
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos) return name;
  return name.substr(0, dot) == kernel.name ? name.substr(dot + 1) : std::string_view();
}

std::vector<std::size_t> code_parameters(const Problem& problem, const Kernel& kernel) {
  // Templates may also use parameters of other kernels.
  std::vector<std::string> named = kernel.function.names();
  for (const auto& [language, options] : kernel.options)
    for (const Template& option : options)
      for (std::string& name : option.names()) named.push_back(std::move(name));
  for (const Argument& argument : arguments_of(problem, kernel))
    if (argument.when)
      for (const std::string& name : argument.when->names()) named.push_back(name);
  std::vector<std::size_t> positions;
  for (std::size_t i = 0; i < problem.parameters.size(); ++i) {
    const Parameter& parameter = problem.parameters[i];
    const bool in_template = std::ranges::find(named, parameter.name) != named.end();
    if (!macro_name(kernel, parameter).empty() || in_template) positions.push_back(i);
  }
  return positions;
}

std::set<std::string> passed_buffers(const Problem& problem, const Constants& constants,
                                     const Configuration& configuration) {
  std::set<std::string> passed;
  for (const Kernel& kernel : problem.kernels) {
    const ConfigurationScope names(problem.parameters, configuration, constants, kernel.name);
    add_passed(kernel.arguments, names.scope(), passed);
  }
  return passed;
}

CompileJob make_compile_job(const Problem& problem, const Kernel& kernel, const DeviceInfo& device,
                            const Constants& constants, const Configuration& configuration) {
  const KernelSource& source = source_for_device(kernel, device.backend);
  const ConfigurationScope names(problem.parameters, configuration, constants, kernel.name);
  const Scope scope = names.scope();
  CompileJob job;
  job.language = language_on_device(source, device.backend);
  job.source = source.text;
  job.source_name = source.file.empty() ? "kernel" : source.file.filename().string();
  for (const auto& folder : include_folders_of(source)) job.include_folders.push_back(folder.string());
  const auto is_parameter = [&](const std::string& name) {
    return std::ranges::any_of(problem.parameters,
                               [&](const Parameter& p) { return p.name == name || macro_name(kernel, p) == name; });
  };
  for (std::size_t i = 0; i < std::min(problem.parameters.size(), configuration.size()); ++i) {
    const std::string_view macro = macro_name(kernel, problem.parameters[i]);
    if (!macro.empty()) job.defines.emplace_back(macro, macro_text(configuration[i]));
  }
  for (const auto& [name, value] : constants) {
    if (name.find('.') != std::string::npos || is_parameter(name)) continue;
    job.defines.emplace_back(name, macro_text(value));
  }
  for (const std::string& group : {std::string(), to_string(job.language)}) {
    const auto options = kernel.options.find(group);
    if (options == kernel.options.end()) continue;
    for (const Template& option : options->second) {
      const std::string text = rendered(option, scope, job.language);
      // a parameter that is the whole option may give several: "-O3 -ffast-math"
      const bool whole = option.text().starts_with("{{") && option.text().find("}}") + 2 == option.text().size();
      for (std::string& one : whole ? split(text, ' ') : std::vector{text})
        if (!one.empty()) job.options.push_back(std::move(one));
    }
  }
  job.function = rendered(kernel.function, scope, job.language);
  std::vector<Argument> passed;
  for (const Argument& argument : arguments_of(problem, kernel))
    if (argument.passed(scope)) passed.push_back(argument);
  job.arguments = signature_of(passed);
  job.disassemble = names_instructions(problem);
  return job;
}

const std::vector<Argument>& arguments_of(const Problem& problem, const Kernel& kernel) {
  const bool borrows = kernel.arguments.empty() && !problem.has_named_kernels();
  return borrows ? problem.kernel().arguments : kernel.arguments;
}

LaunchGeometry make_geometry(const Launch& launch, const Scope& scope) {
  LaunchGeometry geometry;
  for (std::size_t d = 0; d < std::min<std::size_t>(3, launch.block.size()); ++d) {
    geometry.block[d] = extent(launch.block[d], scope, "block");
  }
  for (std::size_t d = 0; d < std::min<std::size_t>(3, launch.grid.size()); ++d) {
    geometry.grid[d] = extent(launch.grid[d], scope, "grid");
  }
  if (launch.grid.empty()) {
    for (std::size_t d = 0; d < std::min<std::size_t>(3, launch.global.size()); ++d) {
      const std::uint64_t global = extent(launch.global[d], scope, "global");
      geometry.grid[d] = static_cast<std::uint32_t>((global + geometry.block[d] - 1) / geometry.block[d]);
    }
  }
  const std::int64_t shared = whole_count(launch.shared_memory_bytes.evaluate(scope), "the dynamic shared memory",
                                          launch.shared_memory_bytes.place());
  if (shared < 0 || shared > std::numeric_limits<std::uint32_t>::max()) {
    throw UserError(fmt::format("the dynamic shared memory {} is {} bytes", launch.shared_memory_bytes.text(), shared),
                    launch.shared_memory_bytes.place());
  }
  geometry.shared_memory_bytes = static_cast<std::uint32_t>(shared);
  return geometry;
}

std::size_t local_bytes(const Argument& argument, const Scope& scope) {
  const std::int64_t count =
      whole_count(argument.count.evaluate(scope), fmt::format("the count of the local memory \"{}\"", argument.name),
                  argument.place);
  const double bytes = static_cast<double>(count) * static_cast<double>(size_of(argument.type));
  if (!(bytes >= 0) || bytes > std::numeric_limits<std::uint32_t>::max())
    throw UserError(fmt::format("the local memory \"{}\" is {} bytes", argument.name, bytes), argument.place);
  return static_cast<std::size_t>(bytes);
}

std::string values_text(const Constants& values) {
  std::string text;
  for (const auto& [name, value] : values)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value.to_string());
  return text;
}

Configuration default_values(const Problem& problem) {
  Configuration values;
  for (const Parameter& parameter : problem.parameters)
    values.push_back(parameter.default_or_first().value_or(Value(1)));
  return values;
}

}  // namespace ergotune
