#include "space/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>

#include "ergotune/base/error.hpp"
#include "space/generated.hpp"
#include "space/layer_builder.hpp"
#include "space/program.hpp"

namespace ergotune {
namespace {

using program::Code;
using program::Compiled;
using program::kNone;
using program::OperationId;

/// What an opaque restriction says.
enum Verdict : std::int64_t { kFails = 0, kHolds = 1, kCannotTell = 2 };

class Builder {
 public:
  Builder(BuiltSpace& space, const std::vector<Restriction>& restrictions, const SpaceOptions& options,
          BuildPurpose purpose)
      : space_(space),
        parameters_(space.parameters),
        restrictions_(restrictions),
        options_(options),
        purpose_(purpose),
        program_(parameters_) {}

  void build() {
    resolve_parameters();
    gather_texts();
    compile_candidates();
    for (std::size_t r = 0; r < restrictions_.size(); ++r) compile_restriction(r);
    auto components = form_components();
    for (const auto& parameter : parameters_)
      space_.cartesian_size *= static_cast<double>(parameter.values.size());
    std::vector<ComponentLayers> layers;
    if (impossible_) {
      Layer nothing;
      nothing.first_choice = {0, 0};
      nothing.slots = {0};
      std::vector<std::uint32_t> all(parameters_.size());
      std::iota(all.begin(), all.end(), 0u);
      if (!all.empty()) layers.emplace_back(std::move(all), Layers{std::move(nothing)});
    } else {
      for (auto& component : components) layers.emplace_back(component.members, build_component(component));
    }
    assemble_chains(space_, std::move(layers));
    if (impossible_) space_.size = 0, space_.approximate_size = 0;
    if (failure_ && space_.size > 0) throw *failure_;
  }

 private:
  const Value* constant(std::string_view name) const {
    const auto found = options_.constants.find(name);
    return found == options_.constants.end() ? nullptr : &found->second;
  }
  std::optional<std::uint32_t> parameter(std::string_view name) const {
    const auto found = index_.find(name);
    return found == index_.end() ? std::nullopt : std::optional(found->second);
  }

  [[noreturn]] void unknown(const std::string& name, const std::string& where,
                            const SourcePlace& place) const {
    std::vector<std::string> known;
    for (const auto& p : parameters_) known.push_back(p.name);
    for (const auto& [key, value] : options_.constants) known.push_back(key);
    const bool of_device = name.starts_with("device.") && options_.constants.lower_bound("device.") ==
                                                              options_.constants.lower_bound("device/");
    throw UserError(
        fmt::format("unknown name \"{}\" in {}{}", name, where,
                    of_device ? "; device limits are known once a device or a device profile is chosen"
                              : suggestion(name, known)),
        place);
  }

  // ---- parameters

  void resolve_parameters() {
    for (std::uint32_t p = 0; p < parameters_.size(); ++p) {
      Parameter& parameter = parameters_[p];
      if (index_.contains(parameter.name) || constant(parameter.name) != nullptr)
        throw UserError(fmt::format("the name \"{}\" is given twice", parameter.name), parameter.place);
      generators_.emplace_back();
      ranges_.emplace_back();
      if (parameter.generator) {
        tabulate(p, parameter.generator);
      } else if (parameter.range) {
        for (const auto* part : {&parameter.range->start, &parameter.range->stop, &parameter.range->step})
          for (const auto& name : part->names())
            if (!index_.contains(name) && constant(name) == nullptr) {
              for (std::uint32_t later = p; later < parameters_.size(); ++later)
                if (parameters_[later].name == name)
                  throw UserError(
                      fmt::format("the range of parameter \"{}\" uses \"{}\", which does not come before it",
                                  parameter.name, name),
                      parameter.place);
              unknown(name, fmt::format("the range of parameter \"{}\"", parameter.name), parameter.place);
            }
        parameter.values = range_values(parameter, parameters_, p, options_.constants);
        ranges_[p] = std::move(parameter.range);
        parameter.range.reset();
      } else {
        drop_repeated_values(parameter);
      }
      if (parameter.values.empty())
        throw UserError(
            fmt::format("parameter \"{}\" has no values{}", parameter.name,
                        ranges_[p] || generators_[p] ? ": what gives them is empty everywhere" : ""),
            parameter.place);
      index_.emplace(parameter.name, p);
    }
  }

  void tabulate(std::uint32_t p, const ValueGenerator& generator) {
    generators_[p] =
        std::make_unique<TabulatedGenerator>(parameters_[p], generator, parameters_, p, options_.constants);
    parameters_[p].values = generators_[p]->values();
    parameters_[p].generator = nullptr;
  }

  static void drop_repeated_values(Parameter& parameter) {
    auto& values = parameter.values;
    bool ascending = true;
    for (std::size_t v = 1; v < values.size() && ascending; ++v) ascending = values[v - 1] < values[v];
    if (ascending) return;
    std::vector<Value> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) return;
    std::vector<Value> kept;
    for (auto& value : values)
      if (std::find(kept.begin(), kept.end(), value) == kept.end()) kept.push_back(value);
    values = std::move(kept);
  }

  static void gather_texts(const ExpressionNode& node, std::vector<std::string>& texts) {
    if (node.kind == ExpressionNode::Kind::constant && node.value.is_string())
      texts.push_back(node.value.as_string());
    for (const auto& child : node.children) gather_texts(*child, texts);
  }

  void gather_texts() {
    std::vector<std::string> texts;
    for (const auto& parameter : parameters_)
      for (const auto& value : parameter.values)
        if (value.is_string()) texts.push_back(value.as_string());
    for (const auto& [name, value] : options_.constants)
      if (value.is_string()) texts.push_back(value.as_string());
    for (const auto& restriction : restrictions_) gather_texts(restriction.expression.root(), texts);
    std::sort(texts.begin(), texts.end());
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    program_.set_texts(std::move(texts));
  }

  void compile_candidates() {
    candidates_.resize(parameters_.size());
    for (std::uint32_t p = 0; p < parameters_.size(); ++p) {
      if (ranges_[p]) {
        try {
          Candidates range;
          range.start = bound(ranges_[p]->start);
          range.stop = bound(ranges_[p]->stop);
          range.step = bound(ranges_[p]->step);
          candidates_[p] = range;
        } catch (const program::Untyped&) {
          Parameter original = parameters_[p];
          original.range = ranges_[p];
          tabulate(p, as_generator(original));
        }
      }
      if (!generators_[p]) continue;
      program::Call call;
      for (const auto input : generators_[p]->reads()) call.inputs.push_back(program_.position(input));
      call.function = [generator = generators_[p].get()](const std::int64_t* positions) -> std::int64_t {
        return generator->list_for(positions);
      };
      candidates_[p].sets = &generators_[p]->lists();
      if (generators_[p]->reads().empty())
        candidates_[p].set = program_.integer(call.function(nullptr));
      else
        candidates_[p].set = program_.opaque(std::move(call));
    }
  }

  OperationId bound(const Expression& expression) {
    const Compiled compiled = program::compile_value(program_, expression.root(), names());
    const auto& operation = program_.at(compiled.value);
    if (compiled.error != kNone || operation.real || operation.text) throw program::Untyped{};
    return compiled.value;
  }

  const program::NameTable& names() {
    if (!names_.parameter) {
      names_.parameter = [this](std::string_view name) { return parameter(name); };
      names_.constant = [this](std::string_view name) { return constant(name); };
    }
    return names_;
  }

  // ---- restrictions

  std::string where(const Restriction& restriction) const {
    if (restriction.name.empty() || restriction.function)
      return fmt::format("the restriction \"{}\"", restriction.label());
    return fmt::format("the restriction \"{}\" ({})", restriction.name, restriction.expression.text());
  }

  void compile_restriction(std::size_t r) {
    const Restriction& restriction = restrictions_[r];
    const auto& used = restriction.function ? restriction.function_names : restriction.expression.names();
    std::vector<std::uint32_t> inputs;
    for (const auto& name : used) {
      if (const auto p = parameter(name))
        inputs.push_back(*p);
      else if (constant(name) == nullptr)
        unknown(name, where(restriction), restriction.expression.place());
    }
    std::vector<Compiled> parts;
    try {
      if (restriction.function) throw program::Untyped{};
      parts = program::compile_condition(program_, restriction.expression.root(), names());
      // what fails for every value is left to the evaluator, which says how
      for (const auto& part : parts)
        if (part.error != kNone && program_.is_true(part.error)) throw program::Untyped{};
    } catch (const program::Untyped&) {
      parts = {opaque(restriction, inputs)};
    }
    for (const auto& part : parts) require(part);
  }

  bool holds(const Restriction& restriction, const Scope& scope) const {
    return restriction.function ? restriction.function(scope)
                                : evaluate_tree(restriction.expression.root(), scope).truthy();
  }

  Compiled opaque(const Restriction& restriction, const std::vector<std::uint32_t>& inputs) {
    if (inputs.empty()) {
      const Scope scope = [this](std::string_view name) { return constant(name); };
      try {
        return {program_.integer(holds(restriction, scope)), kNone};
      } catch (const EvaluationFault& fault) {
        throw UserError(fmt::format("{} in {}", fault.message, where(restriction)),
                        restriction.expression.place());
      }
    }
    program::Call call;
    for (const auto p : inputs) call.inputs.push_back(program_.position(p));
    call.function = [this, &restriction, inputs](const std::int64_t* positions) -> std::int64_t {
      const Scope scope = [&](std::string_view name) -> const Value* {
        for (std::size_t i = 0; i < inputs.size(); ++i)
          if (parameters_[inputs[i]].name == name)
            return &parameters_[inputs[i]].values[static_cast<std::size_t>(positions[i])];
        return constant(name);
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

  void require(const Compiled& part) {
    OperationId condition = program_.truth(part.value);
    if (part.error != kNone && !program_.is_false(part.error)) {
      // A configuration that another restriction excludes need not be evaluated; one that none excludes must
      // be.
      if (purpose_ == BuildPurpose::use) failures_.push_back(part.error);
      condition = program_.logical_or(part.error, condition);
    }
    if (program_.is_false(condition)) impossible_ = true;
    if (program_.is_constant(condition)) return;
    conditions_.push_back(condition);
    if (part.error != kNone) return;
    std::vector<std::uint32_t> used;
    variables_of(condition, used);
    for (const auto p : used) {
      const auto level = static_cast<std::int32_t>(p);
      if (level >= program_.at(condition).level) continue;
      const OperationId relaxed = program::relax(program_, condition, level);
      if (program_.is_false(relaxed)) impossible_ = true;
      if (!program_.is_constant(relaxed)) conditions_.push_back(relaxed);
    }
  }

  // The parameters an operation depends on, ascending.
  void variables_of(OperationId id, std::vector<std::uint32_t>& result) {
    result.clear();
    visited_.resize(program_.size(), 0);
    ++visit_;
    std::vector<OperationId> open{id};
    while (!open.empty()) {
      const OperationId at = open.back();
      open.pop_back();
      if (at == kNone || visited_[static_cast<std::size_t>(at)] == visit_) continue;
      visited_[static_cast<std::size_t>(at)] = visit_;
      const auto& operation = program_.at(at);
      if (operation.code == Code::variable || operation.code == Code::position)
        result.push_back(static_cast<std::uint32_t>(operation.a));
      else if (operation.code == Code::opaque)
        open.insert(open.end(), program_.call(operation.a).inputs.begin(),
                    program_.call(operation.a).inputs.end());
      else if (operation.level >= 0)
        open.insert(open.end(), {operation.a, operation.b, operation.c});
    }
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
  }

  // ---- components

  std::vector<Component> form_components() {
    std::vector<std::uint32_t> leader(parameters_.size());
    std::iota(leader.begin(), leader.end(), 0u);
    const auto find = [&](std::uint32_t p) {
      while (leader[p] != p) p = leader[p] = leader[leader[p]];
      return p;
    };
    std::vector<std::uint32_t> used;
    std::sort(conditions_.begin(), conditions_.end());
    conditions_.erase(std::unique(conditions_.begin(), conditions_.end()), conditions_.end());
    std::vector<std::uint32_t> first_of;
    for (const auto condition : conditions_) {
      variables_of(condition, used);
      for (const auto p : used) leader[find(p)] = find(used[0]);
      first_of.push_back(used[0]);
    }
    for (const auto failure : failures_) {  // its condition may have been folded away
      variables_of(failure, used);
      for (const auto p : used) leader[find(p)] = find(used[0]);
    }
    for (std::uint32_t p = 0; p < parameters_.size(); ++p)
      for (const auto id :
           {candidates_[p].start, candidates_[p].stop, candidates_[p].step, candidates_[p].set}) {
        if (id == kNone) continue;
        variables_of(id, used);
        for (const auto q : used) leader[find(q)] = find(p);
      }
    std::vector<std::uint32_t> number(parameters_.size(), ~std::uint32_t{0});
    std::vector<Component> components;
    for (std::uint32_t p = 0; p < parameters_.size(); ++p) {
      auto& n = number[find(p)];
      if (n == ~std::uint32_t{0}) {
        n = static_cast<std::uint32_t>(components.size());
        components.emplace_back();
      }
      components[n].members.push_back(p);
      components[n].candidates.push_back(candidates_[p]);
    }
    for (std::size_t c = 0; c < conditions_.size(); ++c)
      components[number[find(first_of[c])]].conditions.push_back(conditions_[c]);
    std::sort(failures_.begin(), failures_.end(),
              [&](OperationId a, OperationId b) { return program_.at(a).level < program_.at(b).level; });
    for (const auto failure : failures_) {
      variables_of(failure, used);
      auto& joint = components[number[find(used[0])]].failure;
      joint = joint == kNone ? failure : program_.logical_or(joint, failure);
    }
    return components;
  }

  Layers build_component(const Component& component) {
    try {
      if (purpose_ == BuildPurpose::count) return build_layers(program_, component, {4'000'000, 40'000'000});
      return build_layers(program_, component);
    } catch (const TooManyStates& reached) {
      if (purpose_ == BuildPurpose::count) throw;
      const Parameter& parameter = parameters_[reached.parameter];
      throw UserError(fmt::format("the search space is too entangled to be kept: at parameter \"{}\" too "
                                  "many prefixes differ in what "
                                  "later restrictions need; put parameters that share restrictions next to "
                                  "each other, or restrict "
                                  "the ones before it further",
                                  parameter.name),
                      parameter.place);
    } catch (const UnevaluableConfiguration& configuration) {
      if (!failure_) failure_ = explain_failure(component, configuration);
      return free_layers(component);
    }
  }

  // Any layers that are not empty: only whether the other components are empty still matters.
  static Layers free_layers(const Component& component) {
    Layer layer;
    layer.first_choice = {0, 1};
    layer.position = {0};
    layer.slot = {0};
    layer.slots = {1};
    layer.next = {0};
    return Layers(component.members.size(), layer);
  }

  UserError explain_failure(const Component& component, const UnevaluableConfiguration& configuration) const {
    Configuration values(parameters_.size());
    std::string text;
    for (std::size_t m = 0; m < component.members.size(); ++m) {
      const Parameter& parameter = parameters_[component.members[m]];
      values[component.members[m]] = parameter.values[configuration.positions[m]];
    }
    const Scope scope = [&](std::string_view name) -> const Value* {
      const auto p = parameter(name);
      return p ? &values[*p] : constant(name);
    };
    for (const auto& restriction : restrictions_) {
      const auto& used = restriction.function ? restriction.function_names : restriction.expression.names();
      std::vector<std::uint32_t> inputs;
      for (const auto& name : used)
        if (const auto p = parameter(name)) inputs.push_back(*p);
      if (!std::all_of(inputs.begin(), inputs.end(), [&](std::uint32_t p) {
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
      for (const auto p : inputs)
        text += fmt::format("{}{}={}", text.empty() ? "" : ", ", parameters_[p].name, values[p].to_literal());
      return UserError(
          fmt::format("{} in {} for {}; exclude such values by another restriction, or test for them first "
                      "(\"x == 0 or ...\")",
                      message, where(restriction), text),
          restriction.expression.place());
    }
    return UserError("a restriction cannot be evaluated");
  }

  BuiltSpace& space_;
  std::vector<Parameter>& parameters_;
  const std::vector<Restriction>& restrictions_;
  const SpaceOptions& options_;
  BuildPurpose purpose_;
  program::Program program_;
  program::NameTable names_;
  std::map<std::string, std::uint32_t, std::less<>> index_;
  std::vector<std::unique_ptr<TabulatedGenerator>> generators_;
  std::vector<std::optional<DependentRange>> ranges_;
  std::vector<Candidates> candidates_;
  std::vector<OperationId> conditions_, failures_;
  std::vector<std::uint32_t> visited_;
  std::uint32_t visit_ = 0;
  bool impossible_ = false;
  std::optional<UserError> failure_;
};

}  // namespace

BuiltSpace build_diagrams(std::vector<Parameter> parameters, const std::vector<Restriction>& restrictions,
                          const SpaceOptions& options, BuildPurpose purpose) {
  BuiltSpace space;
  space.parameters = std::move(parameters);
  Builder(space, restrictions, options, purpose).build();
  return space;
}

}  // namespace ergotune
