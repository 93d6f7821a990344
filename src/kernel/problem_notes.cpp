#include "kernel/problem_notes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

#include "base/kernel_source/identifiers.hpp"
#include "base/kernel_source/outline.hpp"
#include "base/kernel_source/signature.hpp"
#include "base/text.hpp"
#include "device/backend.hpp"
#include "ergotune/problem.hpp"
#include "kernel/configure.hpp"
#include "kernel/macro_clashes.hpp"
#include "problem/draft/structures.hpp"
#include "problem/files/includes.hpp"

namespace ergotune {
namespace {

using kernel_source::Function;

std::string file_of(const KernelSource& source) { return source.file.empty() ? "kernel" : source.file.string(); }

/// The name of the function without template arguments.
std::string function_of(const Kernel& kernel) {
  return kernel.function.text().substr(0, kernel.function.text().find('<'));
}

/// Messages for macros that the source defines to another value than the problem gives them.
void add_redefinitions(const Problem& problem, const KernelSource& source, const std::vector<std::string>& macros,
                       const Constants& constants, std::vector<std::string>& notes) {
  if (source.text.find("define") == std::string::npos) return;
  for (const std::string& name : macros) {
    const auto macro = kernel_source::redefinition_of(source.text, name);
    if (!macro) continue;
    const bool is_parameter =
        std::ranges::any_of(problem.parameters, [&](const Parameter& p) { return p.name == name; });
    const auto constant = is_parameter ? constants.end() : constants.find(name);
    if (constant != constants.end() && constant->second.to_string() == macro->value) continue;
    notes.push_back(
        fmt::format("{0}:{1}: the source defines {2} again, so that the {3} {2} of the problem has no effect on what "
                    "follows: write "
                    "\"#ifndef {2}\" before and \"#endif\" after this line",
                    file_of(source), macro->line, name, constant == constants.end() ? "parameter" : "constant"));
  }
}

/// The name of dynamic shared memory that CUDA or HIP code declares; empty if it declares none.
std::string_view dynamic_shared_memory(std::string_view code) {
  for (std::size_t at = 0; (at = code.find("extern", at)) != std::string_view::npos; at += 6) {
    const std::string_view declaration = code.substr(at, code.find(';', at) - at);
    const std::size_t array = declaration.rfind('[');
    if (array == std::string_view::npos || declaration.find("__shared__") == std::string_view::npos) continue;
    const std::string_view name = trimmed(declaration.substr(0, array));
    std::size_t begin = name.size();
    while (begin > 0 && kernel_source::in_identifier(name[begin - 1])) --begin;
    return name.substr(begin);
  }
  return {};
}

/// Returns a message if the kernel uses dynamic shared memory and its launch gives it none.
std::string note_of_shared_memory(const Kernel& kernel, const KernelSource& source) {
  if (source.text.find("__shared__") == std::string::npos || kernel.launch.shared_memory_bytes.text() != "0" ||
      std::ranges::count(kernel.arguments, Argument::Kind::local_memory, &Argument::kind) > 0)
    return {};
  const kernel_source::Outline outline = kernel_source::outline_of(source.text);
  const std::string function = function_of(kernel);
  for (const Function& one : outline.functions) {
    if (one.name != function) continue;
    std::string name(dynamic_shared_memory(one.body));
    if (name.empty()) {
      name = dynamic_shared_memory(outline.outside);
      if (!kernel_source::identifiers_in(one.body).contains(name)) continue;
    }
    return fmt::format(
        "{}: {} uses dynamic shared memory (extern __shared__ {}), but its launch gives it none: add "
        "shared_memory_bytes = BYTES to the launch",
        file_of(source), function, name);
  }
  return {};
}

/// Returns a message if a function of the host has OpenMP directives that its compiler is not asked to obey.
std::string note_of_openmp(const Problem& problem, const Kernel& kernel, const KernelSource& source) {
  const bool fortran = source.language == Language::fortran;
  if (!fortran && source.language != Language::c && source.language != Language::cpp) return {};
  const std::string text = fortran ? source.text : kernel_source::blank_comments(source.text);
  bool used = false;
  for (const std::string& line : split(text, '\n')) {
    std::string start;
    for (const char c : line)
      if (start.size() < 10 && c != ' ' && c != '\t' && c != '\r')
        start += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    used = used || start.starts_with(fortran ? "!$omp" : "#pragmaomp");
  }
  if (!used) return {};
  // "-fopenmp", "-qopenmp", "-mp", "-xopenmp", "/openmp", in an option or in a parameter that is one
  const auto enables = [](const std::string& option) {
    return option.find("openmp") != std::string::npos || option.starts_with("-mp");
  };
  for (const auto& [language, options] : kernel.options)
    for (const Template& option : options)
      if (enables(option.text())) return {};
  for (const Parameter& parameter : problem.parameters)
    for (const Value& value : parameter.values)
      if (enables(value.to_string())) return {};
  return fmt::format(
      "{}: the OpenMP directives of {} have no effect, since no option enables them: add \"-fopenmp\" to the options "
      "of the kernel",
      file_of(source), function_of(kernel));
}

/// Returns a message if the problem gives a function's arguments by the source's names, but in another order.
std::string note_of_order(const Kernel& kernel, const KernelSource& source) {
  std::vector<std::string> given, taken;
  for (const Argument& argument : kernel.arguments) given.push_back(argument.name);
  const std::string function = function_of(kernel);
  for (const Function& one : kernel_source::outline_of(source.text).functions)
    if (one.name == function)
      for (const auto& parameter : kernel_source::parameters_of(one.parameters, true)) taken.push_back(parameter.name);
  if (given == taken || given.size() != taken.size() || !std::ranges::is_permutation(given, taken)) return {};
  return fmt::format(
      "{} takes {}, and the problem gives it {}: arguments are passed by their order, not by their names", function,
      fmt::join(taken, ", "), fmt::join(given, ", "));
}

/// Adds a message for each structure with a member whose type differs from the source's, which sizes need not show.
void add_notes_of_structures(const Kernel& kernel, const KernelSource& source, const std::vector<std::string>& macros,
                             bool opencl, std::vector<std::string>& notes) {
  std::vector<std::string> folders;
  for (const auto& folder : include_folders_of(source)) folders.push_back(folder.string());
  const auto is_real = [](ElementType type) { return to_string(type).starts_with("float"); };
  for (const Argument& argument : kernel.arguments) {
    if (argument.kind != Argument::Kind::scalar || argument.fields.empty()) continue;
    std::string text;
    for (const IncludedFile& header : included_files(source.text, folders)) text += header.text + "\n";
    const std::vector<Field> members = draft::members_in_source(text + source.text, opencl, argument.type_name, macros);
    for (std::size_t i = 0; i < std::min(members.size(), argument.fields.size()); ++i) {
      const Field &own = argument.fields[i], &other = members[i];
      if (size_of(own.type) == size_of(other.type) && is_real(own.type) == is_real(other.type)) continue;
      notes.push_back(fmt::format("member \"{}\" of argument \"{}\" is declared {}, and {} of {} in {} is {}", own.name,
                                  argument.name, to_string(own.type), other.name, argument.type_name, file_of(source),
                                  to_string(other.type)));
      break;
    }
  }
}

void add_notes(const Problem& problem, const Kernel& kernel, const KernelSource& source, const Constants& constants,
               const std::string& backend, std::vector<std::string>& notes) {
  std::vector<std::string> macros;
  for (const Parameter& parameter : problem.parameters)
    if (const std::string_view name = macro_name(kernel, parameter); !name.empty()) macros.emplace_back(name);
  for (const auto& [name, value] : constants)
    if (name.find('.') == std::string::npos) macros.push_back(name);
  for (const MacroClash& clash : macro_clashes(source, macros)) {
    const auto constant = constants.find(clash.name);
    notes.push_back(fmt::format(
        "{}: \"{}\" is declared here, but it is also {} of the problem, which reaches the kernel as a macro{}: "
        "rename one of them",
        clash.place.to_string(), clash.name, constant != constants.end() ? "a constant" : "a parameter",
        constant != constants.end() ? fmt::format(" ({})", constant->second.to_string()) : std::string()));
  }
  add_redefinitions(problem, source, macros, constants, notes);
  add_notes_of_structures(kernel, source, macros, backend == "opencl", notes);
  for (std::string& note : kernel_source::unfilled_variables(source.text, source.file.string()))
    notes.push_back(std::move(note));
  for (const std::string& note : {note_of_order(kernel, source), note_of_shared_memory(kernel, source)})
    if (!note.empty()) notes.push_back(note);
}

}  // namespace

std::vector<std::string> source_notes(const Problem& problem, const Constants& constants, const std::string& backend) {
  std::vector<std::string> notes;
  std::vector<const Verification*> verifications{&problem.verification};
  for (const Kernel& kernel : problem.kernels) {
    const KernelSource& source = source_for_device(kernel, backend);
    add_notes(problem, kernel, source, constants, backend, notes);
    if (std::string note = note_of_openmp(problem, kernel, source); !note.empty()) notes.push_back(std::move(note));
    if (kernel.verification) verifications.push_back(kernel.verification.get());
  }
  for (const Verification* verification : verifications)
    for (const std::string& place : {backend, std::string("host")})
      if (verification->reference && has_source_for(*verification->reference, place)) {
        const Kernel& reference = *verification->reference;
        add_notes(problem, reference, source_for_device(reference, place), constants, place, notes);
        break;
      }
  return notes;
}

std::string note_of_outputs(const Problem& problem) {
  if (problem.verification.kind == Verification::Kind::none) return {};
  bool buffers = false;
  for (const Kernel& kernel : problem.kernels)
    for (const Argument& argument : kernel.arguments) {
      if (argument.kind != Argument::Kind::buffer) continue;
      if (argument.access != Access::read) return {};
      buffers = true;
    }
  return buffers ? "no argument is declared as written, so the kernel's output is not checked; write access = "
                   "\"write\" or \"read_write\" of its outputs"
                 : "";
}

std::string note_of_default(const Problem& problem, const SearchSpace& space, const Constants& constants) {
  const std::vector<Parameter>& parameters = space.parameters();
  const auto has_default = [](const Parameter& parameter) { return parameter.default_value.has_value(); };
  if (space.empty() || space.default_configuration() || std::ranges::none_of(parameters, has_default)) return {};
  Configuration standard;
  for (const Parameter& parameter : parameters) {
    const std::optional<Value> value = parameter.default_or_first();
    // Kernel Tuner's layer gives a default outside of the values to have none.
    if (!value || std::ranges::find(parameter.values, *value) == parameter.values.end()) return {};
    standard.push_back(*value);
  }
  const ConfigurationScope names(parameters, standard, constants);
  for (const Restriction& restriction : problem.restrictions) {
    const bool met = restriction.function ? restriction.function(names.scope())
                                          : restriction.expression.evaluate_bool(names.scope());
    if (!met)
      return fmt::format(
          "the restriction \"{}\" excludes the default configuration ({}), with which the best would be compared: give "
          "defaults that meet it",
          restriction.label(), describe(parameters, standard));
  }
  return {};
}

}  // namespace ergotune
