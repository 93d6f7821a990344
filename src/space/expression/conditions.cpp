#include "space/expression/conditions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "space/expression/expression_tokens.hpp"

namespace ergotune {

using program::Code;
using program::Compiled;
using program::kNone;
using program::OperationId;

namespace {

/// Result of an opaque restriction.
enum Verdict : std::int64_t { kFails = 0, kHolds = 1, kCannotTell = 2 };

const std::vector<std::string>& names_in(const Restriction& restriction) {
  return restriction.function ? restriction.function_names : restriction.expression.names();
}

}  // namespace

void Conditions::compile() {
  for (const Restriction& restriction : restrictions_) compile(restriction);
  std::ranges::sort(conditions_);
  conditions_.erase(std::unique(conditions_.begin(), conditions_.end()), conditions_.end());
}

void Conditions::compile(const Restriction& restriction) {
  for (const auto& name : names_in(restriction))
    if (!names_.knows(name)) names_.unknown(name, where(restriction), restriction.expression.place());
  std::vector<Compiled> parts;
  try {
    if (restriction.function) throw program::Untyped{};
    parts = program::compile_condition(program_, restriction.expression.root(), table_);
    // a part that fails for all values is left to the evaluator, which reports how
    for (const auto& part : parts)
      if (part.error != kNone && program_.is_true(part.error)) throw program::Untyped{};
  } catch (const program::Untyped&) {
    parts = {opaque(restriction, inputs_of(restriction))};
  }
  for (const auto& part : parts) require(part);
}

std::vector<std::uint32_t> Conditions::inputs_of(const Restriction& restriction) const {
  std::vector<std::uint32_t> inputs;
  for (const auto& name : names_in(restriction))
    if (const auto p = names_.parameter(name)) inputs.push_back(*p);
  return inputs;
}

std::string Conditions::where(const Restriction& restriction) const {
  if (restriction.name.empty() || restriction.function)
    return fmt::format("the restriction \"{}\"", excerpt(restriction.label()));
  return fmt::format("the restriction \"{}\" ({})", restriction.name, excerpt(restriction.expression.text()));
}

bool Conditions::holds(const Restriction& restriction, const Scope& scope) const {
  return restriction.function ? restriction.function(scope)
                              : evaluate_tree(restriction.expression.root(), scope).truthy();
}

Compiled Conditions::opaque(const Restriction& restriction, const std::vector<std::uint32_t>& inputs) {
  if (inputs.empty()) {
    const Scope scope = [this](std::string_view name) { return names_.constant(name); };
    try {
      return {program_.integer(holds(restriction, scope)), kNone};
    } catch (const EvaluationFault& fault) {
      throw UserError(fmt::format("{} in {}", fault.message, where(restriction)), restriction.expression.place());
    }
  }
  program::Call call;
  for (const auto p : inputs) call.inputs.push_back(program_.position(p));
  call.function = [this, &restriction, inputs](const std::int64_t* positions) -> std::int64_t {
    const auto& parameters = program_.parameters();
    const Scope scope = [&](std::string_view name) -> const Value* {
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (parameters[inputs[i]].name == name)
          return &parameters[inputs[i]].values[static_cast<std::size_t>(positions[i])];
      return names_.constant(name);
    };
    try {
      return holds(restriction, scope) ? kHolds : kFails;
    } catch (const EvaluationFault&) {
      return kCannotTell;
    } catch (const UserError&) {
      return kCannotTell;
    }
  };
  const OperationId verdict = program_.opaque(std::move(call));
  return {program_.compare(Code::equal, verdict, program_.integer(kHolds)),
          program_.compare(Code::equal, verdict, program_.integer(kCannotTell))};
}

void Conditions::require(const Compiled& part) {
  OperationId condition = program_.truth(part.value);
  if (part.error != kNone && !program_.is_false(part.error)) {
    // A configuration that another restriction excludes need not be evaluable; all others must be.
    if (purpose_ == BuildPurpose::use) failures_.push_back(part.error);
    condition = program_.logical_or(part.error, condition);
  }
  if (program_.is_false(condition)) impossible_ = true;
  if (program_.is_constant(condition)) return;
  conditions_.push_back(condition);
  if (part.error != kNone) return;
  for (const auto p : program_.variables_of(condition)) {
    const auto level = static_cast<std::int32_t>(p);
    if (level >= program_.at(condition).level) continue;
    const OperationId relaxed = program::relax(program_, condition, level);
    if (program_.is_false(relaxed)) impossible_ = true;
    if (!program_.is_constant(relaxed)) conditions_.push_back(relaxed);
  }
}

UserError Conditions::explain_failure(const Component& component, const UnevaluableConfiguration& configuration) const {
  const auto& parameters = program_.parameters();
  Configuration values(parameters.size());
  for (std::size_t m = 0; m < component.members.size(); ++m)
    values[component.members[m]] = parameters[component.members[m]].values[configuration.positions[m]];
  const Scope scope = [&](std::string_view name) -> const Value* {
    const auto p = names_.parameter(name);
    return p ? &values[*p] : names_.constant(name);
  };
  for (const auto& restriction : restrictions_) {
    const std::vector<std::uint32_t> inputs = inputs_of(restriction);
    if (!std::ranges::all_of(inputs, [&](std::uint32_t p) {
          return std::binary_search(component.members.begin(), component.members.end(), p);
        }))
      continue;
    std::string message;
    try {
      holds(restriction, scope);
      continue;
    } catch (const EvaluationFault& fault) {
      message = fault.message;
    } catch (const UserError& error) {
      message = error.message();
    }
    std::string text;
    for (const auto p : inputs)
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", parameters[p].name, values[p].to_literal());
    return UserError(
        fmt::format(
            "{} in {} for {}; exclude such values by another restriction, or test for them first (\"x == 0 or ...\")",
            message, where(restriction), text),
        restriction.expression.place());
  }
  return UserError("a restriction cannot be evaluated");
}

}  // namespace ergotune
