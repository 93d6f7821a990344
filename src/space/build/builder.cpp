#include "space/build/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>

#include "space/build/parameter_lists.hpp"
#include "space/expression/conditions.hpp"

namespace ergotune {

namespace {

using program::kNone;
using program::OperationId;

constexpr LayerLimits kLimitsOfCounting{4'000'000, 40'000'000};

void gather_texts(const ExpressionNode& node, std::vector<std::string>& texts) {
  if (node.kind == ExpressionNode::Kind::constant && node.value.is_string()) texts.push_back(node.value.as_string());
  for (const auto& child : node.children) gather_texts(*child, texts);
}

/// Groups parameters that conditions connect, directly or indirectly (union-find).
class Ties {
 public:
  explicit Ties(std::size_t parameters) : leader_(parameters) { std::iota(leader_.begin(), leader_.end(), 0u); }
  std::uint32_t leader(std::uint32_t p) {
    while (leader_[p] != p) p = leader_[p] = leader_[leader_[p]];
    return p;
  }
  void tie(const std::vector<std::uint32_t>& used, std::uint32_t to) {
    for (const auto p : used) leader_[leader(p)] = leader(to);
  }

 private:
  std::vector<std::uint32_t> leader_;
};

class Builder {
 public:
  Builder(BuiltSpace& space, const std::vector<Restriction>& restrictions, const SpaceOptions& options,
          BuildPurpose purpose)
      : space_(space),
        parameters_(space.parameters),
        restrictions_(restrictions),
        purpose_(purpose),
        program_(parameters_),
        names_(parameters_, options.constants),
        lists_(parameters_, names_),
        conditions_(program_, restrictions, names_, purpose) {}

  void build() {
    lists_.resolve();
    gather_all_texts();
    candidates_ = lists_.candidates(program_);
    conditions_.compile();
    const auto components = form_components();
    for (const auto& parameter : parameters_) space_.cartesian_size *= static_cast<double>(parameter.values.size());
    std::vector<ComponentLayers> layers;
    if (conditions_.impossible())
      layers = no_layers();
    else
      for (auto& component : components) layers.emplace_back(component.members, build_component(component));
    assemble_chains(space_, std::move(layers));
    if (conditions_.impossible()) space_.size = 0, space_.approximate_size = 0;
    if (failure_ && space_.size > 0) throw *failure_;
  }

 private:
  void gather_all_texts() {
    std::vector<std::string> texts;
    for (const auto& parameter : parameters_)
      for (const auto& value : parameter.values)
        if (value.is_string()) texts.push_back(value.as_string());
    for (const auto& [name, value] : names_.constants())
      if (value.is_string()) texts.push_back(value.as_string());
    for (const auto& restriction : restrictions_) gather_texts(restriction.expression.root(), texts);
    std::ranges::sort(texts);
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    program_.set_texts(std::move(texts));
  }

  std::vector<Component> form_components() {
    Ties ties(parameters_.size());
    std::vector<std::uint32_t> first_of;
    for (const auto condition : conditions_.all()) {
      const auto used = program_.variables_of(condition);
      ties.tie(used, used[0]);
      first_of.push_back(used[0]);
    }
    for (const auto failure : conditions_.failures()) {  // the condition may have been removed by folding
      const auto used = program_.variables_of(failure);
      ties.tie(used, used[0]);
    }
    for (std::uint32_t p = 0; p < parameters_.size(); ++p)
      for (const auto id : {candidates_[p].start, candidates_[p].stop, candidates_[p].step, candidates_[p].set})
        if (id != kNone) ties.tie(program_.variables_of(id), p);
    std::vector<std::uint32_t> number(parameters_.size(), ~std::uint32_t{0});
    std::vector<Component> components;
    for (std::uint32_t p = 0; p < parameters_.size(); ++p) {
      auto& n = number[ties.leader(p)];
      if (n == ~std::uint32_t{0}) {
        n = static_cast<std::uint32_t>(components.size());
        components.emplace_back();
      }
      components[n].members.push_back(p);
      components[n].candidates.push_back(candidates_[p]);
    }
    for (std::size_t c = 0; c < first_of.size(); ++c)
      components[number[ties.leader(first_of[c])]].conditions.push_back(conditions_.all()[c]);
    std::vector<OperationId> failures = conditions_.failures();
    std::ranges::sort(failures,
                      [&](OperationId a, OperationId b) { return program_.at(a).level < program_.at(b).level; });
    for (const auto failure : failures) {
      const std::uint32_t first = program_.variables_of(failure)[0];
      auto& joint = components[number[ties.leader(first)]].failure;
      joint = joint == kNone ? failure : program_.logical_or(joint, failure);
    }
    return components;
  }

  Layers build_component(const Component& component) {
    try {
      return build_layers(program_, component, purpose_ == BuildPurpose::count ? kLimitsOfCounting : LayerLimits{});
    } catch (const TooManyStates& reached) {
      if (purpose_ == BuildPurpose::count) throw;
      const Parameter& parameter = parameters_[reached.parameter];
      throw UserError(fmt::format("the search space is too entangled to be kept: at parameter \"{}\" too many prefixes "
                                  "differ in what later restrictions need; put parameters that share restrictions next "
                                  "to each other, or restrict the ones before it further",
                                  parameter.name),
                      parameter.place);
    } catch (const UnevaluableConfiguration& configuration) {
      if (!failure_) failure_ = conditions_.explain_failure(component, configuration);
      return free_layers(component);
    }
  }

  // Returns any non-empty layers; only whether other components are empty still matters.
  static Layers free_layers(const Component& component) {
    Layer layer;
    layer.first_choice = {0, 1};
    layer.position = {0};
    layer.slot = {0};
    layer.slots = {1};
    layer.next = {0};
    return Layers(component.members.size(), layer);
  }

  // Returns the layers of an empty space.
  std::vector<ComponentLayers> no_layers() const {
    if (parameters_.empty()) return {};
    Layer nothing;
    nothing.first_choice = {0, 0};
    nothing.slots = {0};
    std::vector<std::uint32_t> all(parameters_.size());
    std::iota(all.begin(), all.end(), 0u);
    return {{std::move(all), Layers{std::move(nothing)}}};
  }

  BuiltSpace& space_;
  std::vector<Parameter>& parameters_;
  const std::vector<Restriction>& restrictions_;
  BuildPurpose purpose_;
  program::Program program_;
  SpaceNames names_;
  ParameterLists lists_;
  Conditions conditions_;
  std::vector<Candidates> candidates_;
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

void assemble_chains(BuiltSpace& space, std::vector<ComponentLayers> components) {
  std::ranges::sort(components, [](const auto& a, const auto& b) { return a.first.front() < b.first.front(); });
  std::vector<std::vector<std::size_t>> chains;
  for (std::size_t c = 0; c < components.size(); ++c) {
    const auto fits = [&](const auto& chain) {
      return components[chain.back()].first.back() < components[c].first.front();
    };
    const auto chain = std::ranges::find_if(chains, fits);
    if (chain == chains.end())
      chains.push_back({c});
    else
      chain->push_back(c);
  }
  __extension__ using Wide = unsigned __int128;
  constexpr std::uint64_t kLimit = std::uint64_t{1} << 63;
  space.size = 1;
  space.approximate_size = 1;
  for (const auto& chain : chains) {
    Diagram diagram;
    for (auto c = chain.rbegin(); c != chain.rend(); ++c)
      diagram.prepend(components[*c].first, std::move(components[*c].second));
    space.approximate_size *= diagram.approximate_size();
    const Wide product = static_cast<Wide>(space.size) * diagram.size();
    space.size = product >= kLimit ? kLimit : static_cast<std::uint64_t>(product);
    space.chains.push_back(std::move(diagram));
  }
}

}  // namespace ergotune
