#include "tune/plans/plan_part.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ergotune::plans {
namespace {

// Larger spaces are not enumerated; the part is built from the restrictions instead.
constexpr std::uint64_t kEnumerable = 4'000'000;

bool all_numbers(const Parameter& parameter) {
  return !parameter.values.empty() &&
         std::ranges::all_of(parameter.values, [](const Value& v) { return v.is_number(); });
}

std::uint32_t position_of_extreme(const Parameter& parameter, bool largest) {
  const auto compare = [](const Value& a, const Value& b) { return a < b; };
  const auto it = largest ? std::ranges::max_element(parameter.values, compare)
                          : std::ranges::min_element(parameter.values, compare);
  return static_cast<std::uint32_t>(it - parameter.values.begin());
}

std::uint32_t nearest_position(const Parameter& parameter, double value) {
  std::uint32_t best = 0;
  for (std::uint32_t i = 1; i < parameter.values.size(); ++i) {
    if (std::abs(parameter.values[i].as_real() - value) < std::abs(parameter.values[best].as_real() - value)) best = i;
  }
  return best;
}

std::uint32_t default_position(const Parameter& parameter, ParameterKind kind) {
  if (parameter.default_value) {
    const auto it = std::ranges::find(parameter.values, *parameter.default_value);
    if (it != parameter.values.end()) return static_cast<std::uint32_t>(it - parameter.values.begin());
  }
  // Without a default, the middle value is the least extreme choice.
  return kind == ParameterKind::code ? static_cast<std::uint32_t>((parameter.values.size() - 1) / 2)
                                     : position_of_extreme(parameter, true);
}

std::uint32_t fixed_position(const Parameter& parameter, ParameterKind kind, const Value& value,
                             const StageState& state) {
  const std::string word = value.is_string() ? value.as_string() : std::string();
  if (word == "default") return default_position(parameter, kind);
  if (word == "base" && kind != ParameterKind::code) {
    if (kind == ParameterKind::core_clock_mhz && state.base_clock)
      return nearest_position(parameter, *state.base_clock);
    return default_position(parameter, kind);
  }
  if (all_numbers(parameter)) {
    if (word == "max" || word == "min") return position_of_extreme(parameter, word == "max");
    if (word == "model") {
      // Without a model (no core clock to fit over) a plan continues with the default.
      if (kind == ParameterKind::core_clock_mhz && state.model_clock)
        return nearest_position(parameter, *state.model_clock);
      return default_position(parameter, kind);
    }
  }
  const auto it = std::ranges::find(parameter.values, value);
  if (it == parameter.values.end()) {
    throw UserError(
        fmt::format("a plan fixes {} at {}, which is none of its values", parameter.name, value.to_literal()));
  }
  return static_cast<std::uint32_t>(it - parameter.values.begin());
}

}  // namespace

std::vector<std::size_t> parameters_named(const std::string& name, const std::vector<Parameter>& parameters,
                                          const std::vector<ParameterKind>& kinds) {
  std::vector<std::size_t> out;
  const auto is_kind = [&](ParameterKind kind) {
    if (name == "all") return true;
    if (name == "code") return kind == ParameterKind::code;
    if (name == "clocks") return kind == ParameterKind::core_clock_mhz || kind == ParameterKind::memory_clock_mhz;
    return name == "power" && kind == ParameterKind::power_limit_w;
  };
  std::vector<std::string> known = {"all", "code", "clocks", "power"};
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (parameters[i].name == name) return {i};
    if (is_kind(kinds[i])) out.push_back(i);
    known.push_back(parameters[i].name);
  }
  if (out.empty() && std::find(known.begin(), known.begin() + 4, name) == known.begin() + 4) {
    throw UserError(fmt::format("a plan names the unknown parameter \"{}\"{}", name, suggestion(name, known)));
  }
  return out;
}

std::vector<std::uint32_t> default_positions(const SearchSpace& space, const std::vector<ParameterKind>& kinds) {
  const auto& parameters = space.parameters();
  std::vector<std::uint32_t> positions;
  for (std::size_t i = 0; i < parameters.size(); ++i) positions.push_back(default_position(parameters[i], kinds[i]));
  if (!space.empty() && !space.contains(positions)) {
    const std::vector<double> wanted(positions.begin(), positions.end());
    space.values_at(space.nearest(wanted), positions);
  }
  return positions;
}

Allowed allowed_positions(const PlanStage& stage, const SearchSpace& space, const std::vector<ParameterKind>& kinds,
                          const StageState& state) {
  const auto& parameters = space.parameters();
  Allowed allowed(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) allowed[i] = {state.current[i]};
  for (const auto& [name, value] : stage.fixed) {
    for (const std::size_t i : parameters_named(name, parameters, kinds)) {
      allowed[i] = {fixed_position(parameters[i], kinds[i], value, state)};
    }
  }
  for (const std::string& name : stage.free) {
    for (const std::size_t i : parameters_named(name, parameters, kinds)) {
      if (stage.fixed.contains(parameters[i].name)) continue;
      allowed[i].clear();
      const bool limited = stage.in_model_range && state.model_range && kinds[i] == ParameterKind::core_clock_mhz;
      for (std::uint32_t v = 0; v < parameters[i].values.size(); ++v) {
        const double clock = limited ? parameters[i].values[v].as_real() : 0;
        if (limited && (clock < state.model_range->low_mhz - 1e-6 || clock > state.model_range->high_mhz + 1e-6))
          continue;
        allowed[i].insert(v);
      }
      if (allowed[i].empty()) allowed[i] = {nearest_position(parameters[i], state.model_clock.value_or(0))};
    }
  }
  return allowed;
}

std::optional<std::vector<ConfigurationIndex>> indices_of(const SearchSpace& space, const Allowed& allowed) {
  double product = 1;
  for (const auto& positions : allowed) product *= static_cast<double>(positions.size());
  std::vector<ConfigurationIndex> out;
  std::vector<std::uint32_t> positions(allowed.size());
  if (space.size() <= kEnumerable && static_cast<double>(space.size()) < 50 * product) {
    for (ConfigurationIndex index = 0; index < space.size(); ++index) {
      space.values_at(index, positions);
      bool inside = true;
      for (std::size_t i = 0; i < allowed.size() && inside; ++i) inside = allowed[i].contains(positions[i]);
      if (inside) out.push_back(index);
    }
    return out;
  }
  if (product > static_cast<double>(kEnumerable)) return std::nullopt;
  // Few positions are allowed: enumerate their combinations.
  std::vector<std::vector<std::uint32_t>> lists;
  for (const auto& set : allowed) lists.emplace_back(set.begin(), set.end());
  std::vector<std::size_t> at(allowed.size(), 0);
  for (bool more = true; more;) {
    for (std::size_t i = 0; i < at.size(); ++i) positions[i] = lists[i][at[i]];
    if (const auto index = space.index_of(positions)) out.push_back(*index);
    more = false;
    for (std::size_t i = at.size(); i-- > 0;) {
      if (++at[i] < lists[i].size()) {
        more = true;
        break;
      }
      at[i] = 0;
    }
  }
  return out;
}

SearchSpace part_of(const Problem& problem, const SearchSpace& space, const Allowed& allowed,
                    const std::optional<std::vector<ConfigurationIndex>>& indices, const Constants& constants) {
  std::vector<Parameter> parameters = space.parameters();
  if (indices) {
    std::vector<Configuration> list;
    list.reserve(indices->size());
    for (const ConfigurationIndex index : *indices) list.push_back(space.configuration(index));
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      std::vector<Value> values;
      for (const std::uint32_t v : allowed[i]) values.push_back(parameters[i].values[v]);
      parameters[i].values = std::move(values);
      parameters[i].range.reset();
      parameters[i].generator = {};
    }
    return SearchSpace::from_configurations(std::move(parameters), list);
  }
  // Too many to enumerate: add restrictions to the space.
  std::vector<Restriction> restrictions = problem.restrictions;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (allowed[i].size() == parameters[i].values.size()) continue;
    std::string values;
    for (const std::uint32_t v : allowed[i])
      values += (values.empty() ? "" : ", ") + parameters[i].values[v].to_literal();
    Restriction restriction;
    restriction.name = "plan: " + parameters[i].name;
    restriction.expression = Expression::parse(fmt::format("{} in [{}]", parameters[i].name, values));
    restrictions.push_back(std::move(restriction));
  }
  SpaceOptions options;
  options.constants = constants;
  return SearchSpace::build(problem.parameters, std::move(restrictions), options);
}

}  // namespace ergotune::plans
