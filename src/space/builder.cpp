#include "space/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <unordered_map>

#include "ergotune/base/error.hpp"
#include "space/expression_tree.hpp"

namespace ergotune {

void assemble_chains(BuiltSpace& space,
                     std::vector<std::pair<std::vector<std::uint32_t>, Layers>> components) {
  std::sort(components.begin(), components.end(),
            [](const auto& a, const auto& b) { return a.first.front() < b.first.front(); });
  std::vector<std::vector<std::size_t>> chains;
  for (std::size_t c = 0; c < components.size(); ++c) {
    const auto fits = [&](const auto& chain) {
      return components[chain.back()].first.back() < components[c].first.front();
    };
    const auto chain = std::find_if(chains.begin(), chains.end(), fits);
    if (chain == chains.end())
      chains.push_back({c});
    else
      chain->push_back(c);
  }
  __extension__ using Wide = unsigned __int128;
  Wide total = 1;
  for (const auto& chain : chains) {
    Diagram diagram;
    for (auto c = chain.rbegin(); c != chain.rend() && !diagram.empty(); ++c)
      space.fits = diagram.prepend(components[*c].first, components[*c].second) && space.fits;
    diagram.shrink();
    space.approximate_size *= diagram.approximate_size();
    total = std::min<Wide>(total * diagram.size(), Wide{1} << 63);
    space.chains.push_back(std::move(diagram));
  }
  if (total >= Wide{1} << 63) space.fits = false;
  if (space.approximate_size == 0) space.fits = true;
}

namespace {

struct Condition {
  std::vector<std::uint32_t> parameters;
  std::function<bool(const Scope&)> holds;
};

class Builder {
 public:
  Builder(BuiltSpace& space, const std::vector<Restriction>& restrictions, const SpaceOptions& options)
      : space_(space), parameters_(space.parameters), options_(options) {
    for (const auto& [name, value] : options.constants) known_.push_back(name);
    for (std::uint32_t p = 0; p < parameters_.size(); ++p) {
      resolve(p);
      index_[parameters_[p].name] = p;
      known_.push_back(parameters_[p].name);
    }
    for (const auto& restriction : restrictions) add(restriction);
  }

  void build() {
    std::vector<std::uint32_t> leader(parameters_.size());
    std::iota(leader.begin(), leader.end(), 0u);
    auto find = [&](std::uint32_t p) {
      while (leader[p] != p) p = leader[p];
      return p;
    };
    for (const auto& condition : conditions_)
      for (const auto p : condition.parameters) leader[find(p)] = find(condition.parameters[0]);
    std::map<std::uint32_t, std::vector<std::uint32_t>> groups;
    for (std::uint32_t p = 0; p < parameters_.size(); ++p) groups[find(p)].push_back(p);
    std::vector<std::pair<std::vector<std::uint32_t>, Layers>> components;
    for (const auto& [root, members] : groups) components.emplace_back(members, build_component(members));
    if (impossible_) {
      components.clear();
      components.emplace_back(std::vector<std::uint32_t>{}, Layers{});
      std::vector<std::uint32_t> all(parameters_.size());
      std::iota(all.begin(), all.end(), 0u);
      Layer nothing;
      nothing.first_edge = {0, 0};
      components[0] = {all, Layers{nothing}};
    }
    assemble_chains(space_, std::move(components));
    for (const auto& parameter : parameters_)
      space_.cartesian_size *= static_cast<double>(parameter.values.size());
  }

 private:
  const Value* constant(std::string_view name) const {
    const auto found = options_.constants.find(name);
    return found == options_.constants.end() ? nullptr : &found->second;
  }

  std::vector<std::uint32_t> parameters_in(const std::vector<std::string>& names, const std::string& label,
                                           const SourcePlace& place) const {
    std::vector<std::uint32_t> result;
    for (const auto& name : names) {
      if (const auto found = index_.find(name); found != index_.end())
        result.push_back(found->second);
      else if (constant(name) == nullptr)
        throw UserError(fmt::format("unknown name \"{}\" in \"{}\"{}", name, label, suggestion(name, known_)),
                        place);
    }
    std::sort(result.begin(), result.end());
    return result;
  }

  void add(const Restriction& restriction) {
    Condition condition;
    condition.parameters =
        parameters_in(restriction.function ? restriction.function_names : restriction.expression.names(),
                      restriction.label(), restriction.expression.place());
    condition.holds =
        restriction.function ? restriction.function : [&expression = restriction.expression](const Scope& s) {
          return expression.evaluate_bool(s);
        };
    if (condition.parameters.empty()) {
      if (!condition.holds([&](std::string_view name) { return constant(name); })) impossible_ = true;
    } else {
      conditions_.push_back(std::move(condition));
    }
  }

  void resolve(std::uint32_t p) {
    Parameter& parameter = parameters_[p];
    if (index_.contains(parameter.name) || constant(parameter.name) != nullptr)
      throw UserError(fmt::format("the name \"{}\" is given twice", parameter.name), parameter.place);
    if (!parameter.range && !parameter.generator) {
      if (parameter.values.empty())
        throw UserError(fmt::format("parameter \"{}\" has no values", parameter.name), parameter.place);
      return;
    }
    std::vector<std::uint32_t> inputs;
    if (parameter.range) {
      std::vector<std::string> names;
      for (const auto* e : {&parameter.range->start, &parameter.range->stop, &parameter.range->step})
        names.insert(names.end(), e->names().begin(), e->names().end());
      std::sort(names.begin(), names.end());
      names.erase(std::unique(names.begin(), names.end()), names.end());
      inputs = parameters_in(names, "the range of " + parameter.name, parameter.place);
    } else {
      inputs.resize(p);
      std::iota(inputs.begin(), inputs.end(), 0u);
    }
    const auto values_of = [range = parameter.range, generator = parameter.generator,
                            place = parameter.place](const Scope& scope) {
      if (generator) return generator(scope);
      std::vector<Value> values;
      const auto start = range->start.evaluate(scope).as_integer(),
                 stop = range->stop.evaluate(scope).as_integer(),
                 step = range->step.evaluate(scope).as_integer();
      if (step == 0) throw UserError("the step of a range is 0", place);
      for (auto v = start; step > 0 ? v < stop : v > stop; v += step) values.emplace_back(v);
      return values;
    };
    std::set<Value> all;
    std::vector<std::uint32_t> position(inputs.size(), 0);
    for (;;) {
      for (auto& value : values_of(scope_of(inputs, position))) all.insert(value);
      std::size_t i = inputs.size();
      while (i > 0 && ++position[i - 1] == parameters_[inputs[i - 1]].values.size()) position[--i] = 0;
      if (i == 0) break;
    }
    parameter.values.assign(all.begin(), all.end());
    if (parameter.values.empty())
      throw UserError(
          fmt::format("parameter \"{}\" has no values: its range is empty everywhere", parameter.name),
          parameter.place);
    parameter.range.reset();
    parameter.generator = nullptr;
    Condition condition;
    condition.parameters = inputs;
    condition.parameters.push_back(p);
    condition.holds = [values_of, name = parameter.name](const Scope& scope) {
      const auto values = values_of(scope);
      return std::find(values.begin(), values.end(), *scope(name)) != values.end();
    };
    conditions_.push_back(std::move(condition));
  }

  // Names the inputs as they are at these positions, and constants.
  Scope scope_of(const std::vector<std::uint32_t>& inputs, const std::vector<std::uint32_t>& position) const {
    return [&](std::string_view name) -> const Value* {
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (parameters_[inputs[i]].name == name) return &parameters_[inputs[i]].values[position[i]];
      return constant(name);
    };
  }

  Layers build_component(const std::vector<std::uint32_t>& members) {
    Layers layers;
    std::vector<std::vector<std::uint32_t>> states{{}};
    std::vector<std::uint32_t> kept;  // members whose positions a state holds
    for (std::size_t l = 0; l < members.size(); ++l) {
      const std::uint32_t p = members[l];
      std::vector<const Condition*> decided;
      std::set<std::uint32_t> needed;
      for (const auto& condition : conditions_) {
        if (condition.parameters.back() == p) decided.push_back(&condition);
        if (condition.parameters.back() > p)
          for (const auto q : condition.parameters)
            if (q <= p) needed.insert(q);
      }
      std::vector<std::uint32_t> inputs = kept;
      inputs.push_back(p);
      std::vector<std::uint32_t> keep;
      std::vector<std::size_t> from;
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (needed.contains(inputs[i])) {
          keep.push_back(inputs[i]);
          from.push_back(i);
        }
      Layer layer;
      std::map<std::vector<std::uint32_t>, std::uint32_t> found;
      std::vector<std::vector<std::uint32_t>> next;
      for (const auto& state : states) {
        layer.first_edge.push_back(static_cast<std::uint32_t>(layer.position.size()));
        auto position = state;
        position.push_back(0);
        for (std::uint32_t v = 0; v < parameters_[p].values.size(); ++v) {
          position.back() = v;
          const Scope scope = scope_of(inputs, position);
          if (!std::all_of(decided.begin(), decided.end(),
                           [&](const Condition* c) { return c->holds(scope); }))
            continue;
          std::vector<std::uint32_t> key;
          for (const auto i : from) key.push_back(position[i]);
          const auto [at, fresh] = found.try_emplace(key, static_cast<std::uint32_t>(next.size()));
          if (fresh) next.push_back(key);
          layer.position.push_back(v);
          layer.next.push_back(at->second);
        }
      }
      layer.first_edge.push_back(static_cast<std::uint32_t>(layer.position.size()));
      layers.push_back(std::move(layer));
      states = std::move(next);
      kept = std::move(keep);
    }
    return layers;
  }

  BuiltSpace& space_;
  std::vector<Parameter>& parameters_;
  const SpaceOptions& options_;
  std::map<std::string, std::uint32_t, std::less<>> index_;
  std::vector<std::string> known_;
  std::vector<Condition> conditions_;
  bool impossible_ = false;
};

}  // namespace

BuiltSpace build_diagrams(std::vector<Parameter> parameters, const std::vector<Restriction>& restrictions,
                          const SpaceOptions& options) {
  BuiltSpace space;
  space.parameters = std::move(parameters);
  Builder(space, restrictions, options).build();
  return space;
}

}  // namespace ergotune
