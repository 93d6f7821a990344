#include "problem/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "ergotune/problem/quantity.hpp"

namespace ergotune {

namespace {

/// Names that an expression may use, in the words of the message when it uses another.
class Names {
 public:
  void add(const std::string& name) { names_.push_back(name); }
  bool knows(std::string_view name) const {
    return name.starts_with("device.") || std::find(names_.begin(), names_.end(), name) != names_.end();
  }
  const std::vector<std::string>& list() const { return names_; }

 private:
  std::vector<std::string> names_;
};

/// Where `name` stands in an expression: its own place in the text, as far as that can be told.
SourcePlace place_in(const Expression& expression, std::string_view name) {
  const std::string& text = expression.text();
  const auto word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  };
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
  for (const ExecutionParameterSpec& spec : problem.execution_parameters) {
    switch (spec.kind) {
      case ParameterKind::core_clock_mhz:
        names.add("core_clock_mhz");
        break;
      case ParameterKind::memory_clock_mhz:
        names.add("memory_clock_mhz");
        break;
      case ParameterKind::power_limit_w:
        names.add("power_limit_w");
        break;
      case ParameterKind::code:
        break;
    }
  }
}

void check_kernel(const Kernel& kernel, const Names& constants, const Names& all) {
  for (const Argument& argument : kernel.arguments) {
    const std::string what = fmt::format("argument \"{}\"", argument.name);
    if (argument.kind == Argument::Kind::scalar) check(argument.value, all, "the value of " + what);
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
  for (const auto& [list, key] :
       {std::pair{&kernel.launch.grid, "grid"}, std::pair{&kernel.launch.global, "global"},
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

void check_metrics(const Problem& problem, Names names) {
  for (const QuantityInfo& quantity : quantities()) names.add(std::string(quantity.name));
  for (const Metric& metric : problem.metrics) {
    for (const std::string& name : metric.expression.names()) {
      // Observers may bring quantities of any name, so only what looks like a slip is one.
      if (names.knows(name) || nearest_name(name, names.list()).empty()) continue;
      check(metric.expression, names, fmt::format("metric \"{}\"", metric.name));
    }
    names.add(metric.name);
  }
}

void check_distinct(const Problem& problem) {
  for (const Parameter& parameter : problem.parameters) {
    if (!problem.constants.contains(parameter.name)) continue;
    throw UserError(
        fmt::format("\"{}\" is both a constant and a parameter; rename one of them", parameter.name),
        parameter.place);
  }
}

void check_plans(const Problem& problem, const Names& parameters) {
  std::vector<std::string> groups{"code", "clocks", "power", "all"};
  groups.insert(groups.end(), parameters.list().begin(), parameters.list().end());
  for (const PlanSpec& plan : problem.plans) {
    for (const PlanStageSpec& stage : plan.stages) {
      for (const std::string& name : stage.free) {
        if (std::find(groups.begin(), groups.end(), name) != groups.end()) continue;
        throw UserError(fmt::format("plan \"{}\" frees the unknown parameter \"{}\"{}", plan.name, name,
                                    suggestion(name, groups)),
                        stage.place);
      }
      for (const auto& [name, value] : stage.fixed) {
        if (std::find(groups.begin(), groups.end(), name) != groups.end()) continue;
        throw UserError(fmt::format("plan \"{}\" fixes the unknown parameter \"{}\"{}", plan.name, name,
                                    suggestion(name, groups)),
                        stage.place);
      }
    }
  }
}

}  // namespace

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
    check(restriction.expression, names,
          restriction.name.empty() ? fmt::format("restriction {}", i + 1)
                                   : fmt::format("restriction \"{}\"", restriction.name));
  }
  check_kernel(problem.kernel(), constants, names);
  if (problem.verification.reference) {
    check_kernel(*problem.verification.reference, constants, names);
  }
  check_metrics(problem, names);
  check_plans(problem, parameters);
}

}  // namespace ergotune
