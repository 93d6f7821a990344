// Checks of the steps of a workload that need no device.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "ergotune/argument.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "ergotune/space.hpp"
#include "problem/checks.hpp"

namespace ergotune {
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
