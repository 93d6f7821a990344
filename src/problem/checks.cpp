#include "problem/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>

#include "ergotune/argument.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "ergotune/space.hpp"
#include "problem/address_field.hpp"
#include "problem/code_names.hpp"
#include "problem/document/fields.hpp"
#include "problem/program.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune {

bool Names::knows(std::string_view name) const {
  return name.starts_with("device.") || std::ranges::find(names_, name) != names_.end();
}

SourcePlace place_in(const Expression& expression, std::string_view name) {
  const std::string& text = expression.text();
  const auto word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.'; };
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const bool begins = at == 0 || !word(text[at - 1]);
    const bool ends = at + name.size() == text.size() || !word(text[at + name.size()]);
    if (begins && ends) return shifted(expression.place(), at);
  }
  return expression.place();
}

void check(const Expression& expression, const Names& names, const std::string& what) {
  for (const std::string& name : expression.names()) {
    if (names.knows(name)) continue;
    throw UserError(fmt::format("unknown name \"{}\" in {}{}", name, what, suggestion(name, names.list())),
                    place_in(expression, name));
  }
}

void check(const Template& text, const Names& names, const std::string& what) {
  for (const Expression& expression : text.expressions()) check(expression, names, what);
}

namespace {

Names constant_names(const Problem& problem) {
  Names names;
  for (const auto& [name, value] : problem.constants) names.add(name);
  for (const auto& [device, constants] : problem.constants_by_device) {
    for (const auto& [name, value] : constants) {
      if (!names.knows(name)) names.add(name);
    }
  }
  return names;
}

void add_execution(const Problem& problem, Names& names) {
  for (const ExecutionParameterSpec& spec : problem.execution_parameters)
    names.add(document::names_of<ParameterKind>()[static_cast<std::size_t>(spec.kind)]);
}

void check_address(const Field& field, const Kernel& kernel, const Argument& argument) {
  const std::string buffer(buffer_pointed_to(field));
  if (argument.kind == Argument::Kind::buffer && (buffer.empty() || !place_in_buffer(field)))
    throw UserError(fmt::format("\"fields\" of the buffer \"{}\" has \"{}\"; write an address that it holds as "
                                "\"&BUFFER@BYTE\", with its place",
                                argument.name, field.name),
                    argument.place);
  if (buffer.empty()) return;
  if (field.type != ElementType::uint64)
    throw UserError(fmt::format("member \"{}\" of argument \"{}\" is an address: its type is \"uint64\", not \"{}\"",
                                field.name, argument.name, to_string(field.type)),
                    argument.place);
  std::vector<std::string> buffers;
  for (const Argument& other : kernel.arguments)
    if (other.kind == Argument::Kind::buffer) buffers.push_back(other.name);
  if (std::ranges::find(buffers, buffer) == buffers.end())
    throw UserError(
        fmt::format("member \"{}\" of argument \"{}\" is the address of \"{}\", which is not a buffer of the kernel{}",
                    field.name, argument.name, buffer, suggestion(buffer, buffers)),
        argument.place);
}

void check_kernel(const Kernel& kernel, const Names& constants, const Names& all) {
  for (const Argument& argument : kernel.arguments) {
    const std::string what = fmt::format("argument \"{}\"", argument.name);
    if (argument.when) check(*argument.when, all, "the condition of " + what);
    if (argument.kind == Argument::Kind::scalar) check(argument.value, all, "the value of " + what);
    for (const Field& field : argument.fields) {
      check(field.value, all, fmt::format("the value of member \"{}\" of {}", field.name, what));
      check_address(field, kernel, argument);
    }
    if (argument.kind == Argument::Kind::local_memory) check(argument.count, all, "the count of " + what);
    if (argument.kind != Argument::Kind::buffer) continue;
    for (const std::string& name : argument.count.names()) {
      if (constants.knows(name) || !all.knows(name)) continue;
      throw UserError(fmt::format("the count of {} uses the parameter \"{}\"; buffers are made once for all "
                                  "configurations, so their size may only use constants",
                                  what, name),
                      place_in(argument.count, name));
    }
    check(argument.count, constants, "the count of " + what);
  }
  for (const auto& [list, key] : {std::pair{&kernel.launch.grid, "grid"}, std::pair{&kernel.launch.global, "global"},
                                  std::pair{&kernel.launch.block, "block"}}) {
    for (const Expression& expression : *list) check(expression, all, fmt::format("launch.{}", key));
  }
  check(kernel.launch.shared_memory_bytes, all, "launch.shared_memory_bytes");
  check(kernel.function, all, "the kernel's function");
  for (const auto& [language, options] : kernel.options) {
    for (const Template& option : options) {
      check(option, all, fmt::format("the compiler option \"{}\"", option.text()));
    }
  }
}

/// Checks a program's templates, which may use its folders in addition to `names`.
void check_program(const Program& program, const Problem& problem, Names names) {
  for (const std::string_view folder : kProgramFolders) {
    if (names.knows(folder))
      throw UserError(fmt::format("\"{}\" stands for a folder of the program (the page \"Tune whole programs\"); give "
                                  "the parameter or constant another name",
                                  folder),
                      program.place);
  }
  for (const Parameter& parameter : problem.parameters)
    if (program.output.contains(parameter.name))
      throw UserError(
          fmt::format("\"{}\" is both a parameter and a quantity of \"output\"; rename one of them", parameter.name),
          parameter.place);
  names.add("folder");
  Names building = names;
  building.add("build");
  const auto check_all = [](const std::vector<Template>& texts, const Names& known, const char* what) {
    for (const Template& text : texts) check(text, known, what);
  };
  for (const auto& step : program.build) check_all(step, building, "\"build\"");
  for (const ProgramFile& file : program.build_files)
    check(file.text, building, fmt::format("the file \"{}\"", file.name));
  if (!program.build.empty()) names.add("build");
  for (const auto& [name, text] : program.environment) check(text, names, fmt::format("the variable \"{}\"", name));
  names.add("run");
  if (program.folder) check(*program.folder, names, "\"folder\"");
  check_all(program.command, names, "\"command\"");
  check_all(program.check_command, names, "\"check\"");
  if (program.compare) check(program.compare->file, names, "\"file\"");
  for (const ProgramFile& file : program.files) check(file.text, names, fmt::format("the file \"{}\"", file.name));
}

void check_metrics(const Problem& problem, Names names) {
  for (const QuantityInfo& quantity : quantities()) names.add(std::string(quantity.name));
  for (const std::string& name : per_kernel_quantities(problem)) names.add(name);
  if (problem.program)
    for (const auto& [name, pattern] : problem.program->output) names.add(name);
  for (const Metric& metric : problem.metrics) {
    const SourcePlace place = metric.expression.place();
    if (names.knows(metric.name) || quantity_info(metric.name))
      throw UserError(
          fmt::format(
              "\"{}\" is a metric, and something else of this problem already has that name: give the metric another",
              metric.name),
          place);
    for (const std::string& name : metric.expression.names()) {
      const auto later = std::find_if(&metric, problem.metrics.data() + problem.metrics.size(),
                                      [&](const Metric& m) { return m.name == name; });
      if (later != problem.metrics.data() + problem.metrics.size() && !names.knows(name) && !quantity_info(name))
        throw UserError(
            later == &metric
                ? fmt::format("metric \"{}\" uses itself", name)
                : fmt::format("metric \"{}\" uses \"{}\", which stands further down: a metric uses earlier ones",
                              metric.name, name),
            place_in(metric.expression, name));
      // Observers may add quantities with any name, so an unknown name is an error only if it resembles a known one.
      if (names.knows(name) || nearest_name(name, names.list()).empty()) continue;
      check(metric.expression, names, fmt::format("metric \"{}\"", metric.name));
    }
    names.add(metric.name);
  }
}

/// A kernel's own parameter becomes a macro without the kernel's name, so that it must not equal another name there.
void check_distinct(const Problem& problem) {
  for (const Parameter& parameter : problem.parameters) {
    const std::string macro = parameter.name.substr(parameter.name.find('.') + 1);  // npos + 1 is 0
    if (const QuantityInfo* quantity = quantity_info(macro))
      throw UserError(
          fmt::format("\"{}\" is the name of a quantity that is measured ({}); rename the parameter, such as {}_VALUE",
                      macro, quantity->meaning, macro),
          parameter.place);
    if (problem.constants.contains(macro))
      throw UserError(fmt::format("\"{}\" is both a constant and a parameter; rename one of them", macro),
                      parameter.place);
    for (const Parameter& other : problem.parameters) {
      if (&other == &parameter || other.name != macro) continue;
      throw UserError(
          fmt::format("\"{}\" is a parameter of all kernels, and here one of a single kernel; rename one of them",
                      macro),
          parameter.place);
    }
  }
}

void check_plans(const Problem& problem, const Names& parameters) {
  std::vector<std::string> groups{"code", "clocks", "power", "all"};
  groups.insert(groups.end(), parameters.list().begin(), parameters.list().end());
  for (const PlanSpec& plan : problem.plans)
    for (const PlanStageSpec& stage : plan.stages) {
      const auto check = [&](const std::string& name, const char* does) {
        if (std::ranges::find(groups, name) == groups.end())
          throw UserError(fmt::format("plan \"{}\" {} the unknown parameter \"{}\"{}", plan.name, does, name,
                                      suggestion(name, groups)),
                          stage.place);
      };
      for (const std::string& name : stage.free) check(name, "frees");
      for (const auto& [name, value] : stage.fixed) check(name, "fixes");
    }
}

/// Checks the counts of buffers whose expressions use only constants of the file.
void check_counts(const Problem& problem) {
  for (const Kernel& kernel : problem.kernels)
    for (const Argument& argument : kernel.arguments) {
      const auto names = argument.count.names();
      const bool known =
          std::ranges::all_of(names, [&](const std::string& name) { return problem.constants.contains(name); });
      if (argument.kind != Argument::Kind::scalar && known)
        (void)whole_count(argument.count.evaluate(problem.constants),
                          fmt::format("the count of argument \"{}\"", argument.name), argument.place);
    }
}

}  // namespace

std::int64_t whole_count(const Value& value, const std::string& what, const SourcePlace& place) {
  const bool whole = value.is_integer() || (value.is_real() && std::floor(value.as_real()) == value.as_real() &&
                                            std::abs(value.as_real()) < 0x1p62);
  if (!whole) throw UserError(fmt::format("{} is {}, which is not a whole number", what, value.to_literal()), place);
  return value.as_integer();
}

void check_names(const Problem& problem) {
  check_distinct(problem);
  const Names constants = constant_names(problem);
  Names names = constants;
  Names parameters;
  for (const Parameter& parameter : problem.parameters) {
    if (parameter.range) {
      const std::string what =
          fmt::format("the range of \"{}\" (it may use constants and earlier parameters)", parameter.name);
      check(parameter.range->start, names, what);
      check(parameter.range->stop, names, what);
      check(parameter.range->step, names, what);
    }
    names.add(parameter.name);
    parameters.add(parameter.name);
  }
  add_execution(problem, names);
  add_execution(problem, parameters);
  for (std::size_t i = 0; i < problem.restrictions.size(); ++i) {
    const Restriction& restriction = problem.restrictions[i];
    Names known = names;
    for (const std::string& name : code_names_in(problem, restriction)) known.add(name);
    check(restriction.expression, known,
          restriction.name.empty() ? fmt::format("restriction {}", i + 1)
                                   : fmt::format("restriction \"{}\"", restriction.name));
  }
  for (std::size_t k = 0; k < problem.kernels.size(); ++k) {
    const Names inside = names_inside(problem, k, names);
    check_kernel(problem.kernels[k], constants, inside);
    if (const auto& own = problem.kernels[k].verification; own && own->reference)
      check_kernel(*own->reference, constants, inside);
  }
  check_counts(problem);
  check_workload(problem, names);
  if (problem.program) check_program(*problem.program, problem, names);
  if (problem.verification.reference) {
    check_kernel(*problem.verification.reference, constants, names);
  }
  check_metrics(problem, names);
  check_plans(problem, parameters);
}

// Checks of the steps of a workload that need no device.
namespace {

using Kind = Step::Kind;

/// Collects, for each kernel, the variables of the loops around its launches.
void collect(const std::vector<Step>& steps, std::vector<std::string>& around,
             std::vector<std::set<std::string>>& seen) {
  for (const Step& step : steps) {
    if (step.kind == Kind::launch && step.kernel < seen.size()) seen[step.kernel].insert(around.begin(), around.end());
    if (step.kind == Kind::loop) around.push_back(step.variable);
    collect(step.steps, around, seen);
    if (step.kind == Kind::loop) around.pop_back();
  }
}

class WorkloadCheck {
 public:
  WorkloadCheck(const Problem& problem, const Names& names) : problem_(problem), names_(names) {
    for (const Kernel& kernel : problem.kernels) {
      for (const Argument& argument : kernel.arguments)
        if (argument.kind == Argument::Kind::buffer) buffers_.emplace(argument.name, &argument);
    }
  }

  void steps(const std::vector<Step>& steps) {
    for (const Step& step : steps) one(step);
  }
  void all_kernels_run() const {
    for (std::size_t k = 0; k < problem_.kernels.size(); ++k) {
      if (launched_.contains(k)) continue;
      throw UserError(fmt::format("kernel \"{}\" is in no step of the workload", problem_.kernels[k].name),
                      problem_.steps.front().place);
    }
  }

 private:
  void one(const Step& step) {
    switch (step.kind) {
      case Kind::launch:
        launched_.insert(step.kernel);
        check(step.launches, names_, "\"launches\"");
        refuse_negative(step);
        break;
      case Kind::loop:
        return loop(step);
      case Kind::swap:
        return swap(step);
      case Kind::concurrent:
        check(step.order, names_, "\"order\"");
        for (const Step& branch : step.steps) {
          check(branch.priority, names_, "\"priority\"");
          check(branch.multiprocessors, names_, "\"multiprocessors\"");
        }
        break;
      case Kind::group:
        break;
    }
    steps(step.steps);
  }

  /// Returns the value of an expression that uses only constants; nullopt for other expressions.
  std::optional<double> value_of(const Expression& expression) const {
    for (const std::string& name : expression.names())
      if (!problem_.constants.contains(name)) return std::nullopt;
    return expression.evaluate(problem_.constants).as_real();
  }

  void refuse_negative(const Step& step) const {
    if (const auto count = value_of(step.launches); count && *count < 0)
      throw UserError(fmt::format("a step has {} launches; it takes 0 or more", *count), step.place);
  }

  void loop(const Step& step) {
    if (names_.knows(step.variable)) {
      const bool of_loop = std::ranges::find(around_, step.variable) != around_.end();
      throw UserError(fmt::format("\"{}\" is the variable of a loop here, and {} already; rename one of them",
                                  step.variable, of_loop ? "of a loop around it" : "a constant or parameter"),
                      step.place);
    }
    check(step.from, names_, "\"from\"");
    check(step.to, names_, "\"to\"");
    check(step.by, names_, "\"by\"");
    const auto from = value_of(step.from), to = value_of(step.to), by = value_of(step.by);
    if (by && *by == 0)
      throw UserError(fmt::format("the loop over \"{}\" never ends: it goes on by 0", step.variable), step.place);
    if (from && to && by && (*to - *from) / *by > static_cast<double>(kMaxLaunchesPerIteration))
      throw UserError(fmt::format("the loop over \"{}\" goes round {:.0f} times; a round has at most {} launches",
                                  step.variable, (*to - *from) / *by, kMaxLaunchesPerIteration),
                      step.place);
    names_.add(step.variable);
    around_.push_back(step.variable);
    steps(step.steps);
    around_.pop_back();
    names_.remove_last();
  }

  const Argument& buffer(const std::string& name, const SourcePlace& place) const {
    const auto found = buffers_.find(name);
    if (found != buffers_.end()) return *found->second;
    std::vector<std::string> known;
    for (const auto& [other, argument] : buffers_) known.push_back(other);
    throw UserError(fmt::format("there is no buffer \"{}\" to swap{}", name, suggestion(name, known)), place);
  }

  void swap(const Step& step) const {
    const Argument &first = buffer(step.first, step.place), &second = buffer(step.second, step.place);
    if (first.type != second.type)
      throw UserError(fmt::format("\"{}\" and \"{}\" cannot be swapped: one is {}, the other {}", step.first,
                                  step.second, to_string(first.type), to_string(second.type)),
                      step.place);
    const auto one = value_of(first.count), other = value_of(second.count);
    if (one && other && *one != *other)
      throw UserError(fmt::format("\"{}\" and \"{}\" cannot be swapped: one has {} elements, the other {}", step.first,
                                  step.second, *one, *other),
                      step.place);
  }

  const Problem& problem_;
  Names names_;
  std::vector<std::string> around_;
  std::map<std::string, const Argument*> buffers_;
  std::set<std::size_t> launched_;
};

}  // namespace

Names names_inside(const Problem& problem, std::size_t kernel, const Names& names) {
  Names inside = names;
  const std::string prefix = problem.kernels[kernel].name + ".";
  if (prefix.size() > 1)
    for (const Parameter& parameter : problem.parameters)
      if (parameter.name.starts_with(prefix)) inside.add(parameter.name.substr(prefix.size()));
  std::vector<std::set<std::string>> seen(problem.kernels.size());
  std::vector<std::string> around;
  collect(problem.steps, around, seen);
  for (const std::string& variable : seen[kernel]) inside.add(variable);
  return inside;
}

void check_workload(const Problem& problem, const Names& names) {
  if (problem.steps.empty()) return;
  WorkloadCheck checked(problem, names);
  checked.steps(problem.steps);
  checked.all_kernels_run();
}

}  // namespace ergotune
