#include "problem/steps.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "ergotune/space.hpp"

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

namespace {

std::vector<Step> steps_of(const Problem& problem) {
  if (!problem.steps.empty()) return problem.steps;
  std::vector<Step> steps(problem.kernels.size());
  for (std::size_t k = 0; k < steps.size(); ++k) steps[k].kernel = k, steps[k].name = problem.kernels[k].name;
  return steps;
}

bool launches_any(const Step& step) {
  return step.kind == Step::Kind::launch || std::ranges::any_of(step.steps, launches_any);
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

/// Removes the launches of other kernels. A concurrent step with one remaining branch becomes a group.
void keep_only(std::vector<Step>& steps, const std::vector<std::size_t>& kernels) {
  const auto kept = [&](std::size_t kernel) { return std::ranges::find(kernels, kernel) != kernels.end(); };
  std::erase_if(steps, [&](const Step& step) { return step.kind == Step::Kind::launch && !kept(step.kernel); });
  for (Step& step : steps) {
    keep_only(step.steps, kernels);
    if (step.kind != Step::Kind::concurrent) continue;
    // Branches that only swap buffers launch nothing.
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
