#include "problem/steps.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ergotune/error.hpp"

namespace ergotune {

Kernel& add_kernel(Problem& problem, const std::string& name) {
  if (name.empty() || name.find('.') != std::string::npos)
    throw UserError(fmt::format("\"{}\" cannot be the name of a kernel", name));
  for (const Kernel& kernel : problem.kernels)
    if (kernel.name == name) throw UserError(fmt::format("two kernels are called \"{}\"", name));
  const Kernel& last = problem.kernels.back();
  const bool empty = last.name.empty() && last.sources.empty() && last.arguments.empty();
  if (!empty && last.name.empty())
    throw UserError("the first kernel has no name: several kernels have one each, given before their sources");
  if (!empty) problem.kernels.emplace_back();
  problem.kernels.back().name = name;
  return problem.kernels.back();
}

Step launch_step(const Problem& problem, const std::string& kernel, Expression launches) {
  std::vector<std::string> names;
  for (const Kernel& known : problem.kernels) names.push_back(known.name);
  const auto found = std::find(names.begin(), names.end(), kernel);
  if (found == names.end())
    throw UserError(fmt::format("there is no kernel \"{}\"{}", kernel, suggestion(kernel, names)));
  Step step;
  step.name = kernel;
  step.kernel = static_cast<std::size_t>(found - names.begin());
  step.launches = std::move(launches);
  return step;
}

Step loop_step(const std::string& variable, Expression from, Expression to, std::vector<Step> steps, Expression by) {
  Step step;
  step.kind = Step::Kind::loop;
  step.variable = variable;
  step.from = std::move(from);
  step.to = std::move(to);
  step.by = std::move(by);
  step.steps = std::move(steps);
  return step;
}

Step swap_step(const std::string& first, const std::string& second) {
  Step step;
  step.kind = Step::Kind::swap;
  step.first = first;
  step.second = second;
  return step;
}

Step branch_step(const std::string& name, std::vector<Step> steps) {
  Step step;
  step.kind = Step::Kind::group;
  step.name = name;
  step.steps = std::move(steps);
  return step;
}

Step concurrent_step(std::vector<Step> branches, const std::string& order) {
  if (branches.size() < 2) throw UserError("a concurrent step has at least two branches");
  std::set<std::string> names;
  for (std::size_t i = 0; i < branches.size(); ++i) {
    if (branches[i].name.empty()) branches[i].name = fmt::format("branch {}", i + 1);
    if (!names.insert(branches[i].name).second)
      throw UserError(fmt::format("two branches are called \"{}\"", branches[i].name));
  }
  Step step;
  step.kind = Step::Kind::concurrent;
  step.steps = std::move(branches);
  step.order = Template::parse(order);
  return step;
}

namespace {

std::vector<Step> steps_of(const Problem& problem) {
  if (!problem.steps.empty()) return problem.steps;
  std::vector<Step> steps(problem.kernels.size());
  for (std::size_t k = 0; k < steps.size(); ++k) steps[k].kernel = k;
  return steps;
}

bool launches_any(const Step& step) {
  return step.kind == Step::Kind::launch || std::any_of(step.steps.begin(), step.steps.end(), launches_any);
}

void flatten(std::vector<Step>& steps) {
  for (Step& step : steps) {
    flatten(step.steps);
    if (step.kind != Step::Kind::concurrent) continue;
    step.kind = Step::Kind::group;
    step.order = step.priority = {};
    for (Step& branch : step.steps) branch.multiprocessors = Expression::constant(0);
  }
}

/// A concurrent step of one branch is left as that branch.
void keep_only(std::vector<Step>& steps, const std::vector<std::size_t>& kernels) {
  const auto kept = [&](std::size_t kernel) {
    return std::find(kernels.begin(), kernels.end(), kernel) != kernels.end();
  };
  std::erase_if(steps, [&](const Step& step) { return step.kind == Step::Kind::launch && !kept(step.kernel); });
  for (Step& step : steps) {
    keep_only(step.steps, kernels);
    if (step.kind != Step::Kind::concurrent) continue;
    // Branches of swaps alone launch nothing.
    std::erase_if(step.steps, [](const Step& branch) { return !launches_any(branch); });
    step.order = {};
    if (step.steps.size() < 2) step.kind = Step::Kind::group;
  }
  std::erase_if(steps, [](const Step& step) {
    return step.kind != Step::Kind::launch && step.kind != Step::Kind::swap && step.steps.empty();
  });
}

}  // namespace

std::vector<Step> steps_in_sequence(const Problem& problem) {
  std::vector<Step> steps = steps_of(problem);
  flatten(steps);
  return steps;
}

std::vector<Step> steps_of_kernels(const Problem& problem, const std::vector<std::size_t>& kernels) {
  std::vector<Step> steps = steps_of(problem);
  keep_only(steps, kernels);
  return steps;
}

std::vector<Step> steps_alone(const Problem& problem, std::size_t kernel) {
  std::vector<Step> steps = steps_in_sequence(problem);
  keep_only(steps, {kernel});
  return steps;
}

}  // namespace ergotune
