#include "space/build/parameter_lists.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ergotune/error.hpp"

namespace ergotune {

namespace {

void drop_repeated_values(Parameter& parameter) {
  auto& values = parameter.values;
  bool ascending = true;
  for (std::size_t v = 1; v < values.size() && ascending; ++v) ascending = values[v - 1] < values[v];
  if (ascending) return;
  std::vector<Value> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  if (std::ranges::adjacent_find(sorted) == sorted.end()) return;
  std::vector<Value> kept;
  for (auto& value : values)
    if (std::ranges::find(kept, value) == kept.end()) kept.push_back(value);
  values = std::move(kept);
}

}  // namespace

void ParameterLists::resolve() {
  for (std::uint32_t p = 0; p < parameters_.size(); ++p) {
    Parameter& parameter = parameters_[p];
    if (names_.knows(parameter.name))
      throw UserError(fmt::format("the name \"{}\" is given twice", parameter.name), parameter.place);
    generators_.emplace_back();
    ranges_.emplace_back();
    if (parameter.generator)
      tabulate(p, parameter.generator);
    else if (parameter.range)
      resolve_range(p);
    else
      drop_repeated_values(parameter);
    if (parameter.values.empty())
      throw UserError(fmt::format("parameter \"{}\" has no values{}", parameter.name,
                                  ranges_[p] || generators_[p] ? ": what gives them is empty everywhere" : ""),
                      parameter.place);
    names_.add(p);
  }
}

void ParameterLists::resolve_range(std::uint32_t p) {
  Parameter& parameter = parameters_[p];
  for (const auto* part : {&parameter.range->start, &parameter.range->stop, &parameter.range->step}) {
    for (const auto& name : part->names()) {
      if (names_.knows(name)) continue;
      const bool comes_later = std::any_of(parameters_.begin() + p, parameters_.end(),
                                           [&](const Parameter& other) { return other.name == name; });
      if (comes_later)
        throw UserError(fmt::format("the range of parameter \"{}\" uses \"{}\", which does not come before it",
                                    parameter.name, name),
                        parameter.place);
      names_.unknown(name, fmt::format("the range of parameter \"{}\"", parameter.name), parameter.place);
    }
  }
  parameter.values = range_values(parameter, parameters_, p, names_.constants());
  ranges_[p] = std::move(parameter.range);
  parameter.range.reset();
}

void ParameterLists::tabulate(std::uint32_t p, const ValueGenerator& generator) {
  generators_[p] = std::make_unique<TabulatedGenerator>(parameters_[p], generator, parameters_, p, names_.constants());
  parameters_[p].values = generators_[p]->values();
  parameters_[p].generator = nullptr;
}

Candidates ParameterLists::compile_range(program::Program& program, const DependentRange& range) const {
  const program::NameTable names = names_.table();
  const auto bound = [&](const Expression& expression) {
    const program::Compiled compiled = program::compile_value(program, expression.root(), names);
    const auto& operation = program.at(compiled.value);
    if (compiled.error != program::kNone || operation.real || operation.text) throw program::Untyped{};
    return compiled.value;
  };
  Candidates candidates;
  candidates.start = bound(range.start);
  candidates.stop = bound(range.stop);
  candidates.step = bound(range.step);
  return candidates;
}

std::vector<Candidates> ParameterLists::candidates(program::Program& program) {
  std::vector<Candidates> all(parameters_.size());
  for (std::uint32_t p = 0; p < parameters_.size(); ++p) {
    if (ranges_[p]) {
      try {
        all[p] = compile_range(program, *ranges_[p]);
      } catch (const program::Untyped&) {
        Parameter original = parameters_[p];
        original.range = ranges_[p];
        tabulate(p, as_generator(original));
      }
    }
    if (!generators_[p]) continue;
    program::Call call;
    for (const auto input : generators_[p]->reads()) call.inputs.push_back(program.position(input));
    call.function = [generator = generators_[p].get()](const std::int64_t* positions) -> std::int64_t {
      return generator->list_for(positions);
    };
    all[p].sets = &generators_[p]->lists();
    if (generators_[p]->reads().empty())
      all[p].set = program.integer(call.function(nullptr));
    else
      all[p].set = program.opaque(std::move(call));
  }
  return all;
}

namespace {

constexpr std::size_t kMostRuns = 4'000'000;
constexpr std::size_t kMostValues = 4'000'000;

[[noreturn]] void too_many(const Parameter& parameter) {
  throw UserError(fmt::format("the values of parameter \"{}\" depend on too many combinations of others (over {})",
                              parameter.name, kMostRuns),
                  parameter.place);
}

std::int64_t whole(const Expression& expression, const Scope& scope, const Parameter& parameter) {
  const Value value = expression.evaluate(scope);
  try {
    return value.as_integer();
  } catch (const UserError&) {
    throw;
  } catch (const Error&) {
    throw UserError(fmt::format("the range of parameter \"{}\" needs whole numbers; \"{}\" gives {}", parameter.name,
                                expression.text(), value.to_literal()),
                    parameter.place);
  }
}

struct Bounds {
  std::int64_t start, stop, step;
};

Bounds bounds_of(const Parameter& parameter, const Scope& scope) {
  const Bounds bounds{whole(parameter.range->start, scope, parameter), whole(parameter.range->stop, scope, parameter),
                      whole(parameter.range->step, scope, parameter)};
  if (bounds.step == 0)
    throw UserError(fmt::format("the step of the range of parameter \"{}\" is 0", parameter.name), parameter.place);
  const double count =
      (static_cast<double>(bounds.stop) - static_cast<double>(bounds.start)) / static_cast<double>(bounds.step);
  if (count > static_cast<double>(kMostValues))
    throw UserError(fmt::format("the range of parameter \"{}\" has {:.3g} values; the limit is {}", parameter.name,
                                count, kMostValues),
                    parameter.place);
  return bounds;
}

template <class F>
void for_each_value(const Bounds& bounds, F f) {
  if (bounds.step > 0)
    for (std::int64_t v = bounds.start; v < bounds.stop; v += bounds.step) f(v);
  else
    for (std::int64_t v = bounds.start; v > bounds.stop; v += bounds.step) f(v);
}

}  // namespace

ValueGenerator as_generator(const Parameter& parameter) {
  return [parameter](const Scope& scope) {
    std::vector<Value> values;
    for_each_value(bounds_of(parameter, scope), [&](std::int64_t v) { values.emplace_back(v); });
    return values;
  };
}

std::vector<Value> range_values(const Parameter& parameter, const std::vector<Parameter>& all, std::uint32_t count,
                                const Constants& constants) {
  std::vector<std::uint32_t> inputs;
  for (std::uint32_t p = 0; p < count; ++p)
    for (const auto* part : {&parameter.range->start, &parameter.range->stop, &parameter.range->step})
      if (std::binary_search(part->names().begin(), part->names().end(), all[p].name) &&
          (inputs.empty() || inputs.back() != p))
        inputs.push_back(p);
  double combinations = 1;
  for (const auto p : inputs) combinations *= static_cast<double>(all[p].values.size());
  if (combinations > static_cast<double>(kMostRuns)) too_many(parameter);
  std::vector<std::size_t> position(inputs.size(), 0);
  const Scope scope = [&](std::string_view name) -> const Value* {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (all[inputs[i]].name == name) return &all[inputs[i]].values[position[i]];
    const auto found = constants.find(name);
    return found == constants.end() ? nullptr : &found->second;
  };
  std::vector<Bounds> found;
  std::int64_t least = INT64_MAX, most = INT64_MIN;
  for (;;) {
    const Bounds bounds = bounds_of(parameter, scope);
    if (bounds.step > 0 ? bounds.start < bounds.stop : bounds.start > bounds.stop) {
      found.push_back(bounds);
      const std::int64_t last =
          bounds.start + (bounds.stop - bounds.start - (bounds.step > 0 ? 1 : -1)) / bounds.step * bounds.step;
      least = std::min({least, bounds.start, last});
      most = std::max({most, bounds.start, last});
    }
    std::size_t i = inputs.size();
    while (i > 0 && ++position[i - 1] == all[inputs[i - 1]].values.size()) position[--i] = 0;
    if (i == 0) break;
  }
  std::vector<Value> values;
  if (found.empty()) return values;
  if (static_cast<double>(most) - static_cast<double>(least) > 16.0 * static_cast<double>(kMostValues))
    throw UserError(fmt::format("the values of parameter \"{}\" span {} to {}: too far for a dependent range",
                                parameter.name, least, most),
                    parameter.place);
  // a run of step +-1 that contains another run makes the latter redundant; sorting by length finds most of them
  std::vector<bool> seen(static_cast<std::size_t>(most - least) + 1, false);
  std::ranges::sort(
      found, [](const Bounds& a, const Bounds& b) { return std::abs(a.stop - a.start) > std::abs(b.stop - b.start); });
  Bounds covered{0, 0, 1};
  for (const auto& bounds : found) {
    const std::int64_t low = bounds.step > 0 ? bounds.start : bounds.stop + 1,
                       high = bounds.step > 0 ? bounds.stop - 1 : bounds.start;
    if (low >= covered.start && high < covered.stop) continue;
    for_each_value(bounds, [&](std::int64_t v) { seen[static_cast<std::size_t>(v - least)] = true; });
    if (std::abs(bounds.step) == 1 && high + 1 - low > covered.stop - covered.start) covered = {low, high + 1, 1};
  }
  for (std::size_t i = 0; i < seen.size(); ++i)
    if (seen[i]) values.emplace_back(least + static_cast<std::int64_t>(i));
  return values;
}

TabulatedGenerator::TabulatedGenerator(const Parameter& parameter, const ValueGenerator& generator,
                                       const std::vector<Parameter>& all, std::uint32_t count,
                                       const Constants& constants)
    : place_of_(all.size(), 0) {
  // A walk over all traces: the parameters in the order in which they are read, each with its assigned position.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> trace;
  std::vector<std::int32_t> position_of(count, -1);
  const Scope scope = [&](std::string_view name) -> const Value* {
    for (std::uint32_t p = 0; p < count; ++p) {
      if (all[p].name != name) continue;
      if (position_of[p] < 0) {
        position_of[p] = 0;
        trace.emplace_back(p, 0);
      }
      return &all[p].values[static_cast<std::size_t>(position_of[p])];
    }
    const auto found = constants.find(name);
    return found == constants.end() ? nullptr : &found->second;
  };
  std::map<std::vector<Value>, std::uint32_t> number_of;
  std::vector<std::vector<Value>> lists;
  std::set<std::uint32_t> reads;
  for (std::size_t runs = 0;; ++runs) {
    if (runs > kMostRuns) too_many(parameter);
    std::vector<Value> given = generator(scope);
    std::sort(given.begin(), given.end());
    given.erase(std::unique(given.begin(), given.end()), given.end());
    const auto [known, fresh] = number_of.try_emplace(given, static_cast<std::uint32_t>(lists.size()));
    if (fresh) lists.push_back(std::move(given));
    // insert the trace
    const std::int32_t leaf = -1 - static_cast<std::int32_t>(known->second);
    std::int32_t* at = &root_;
    if (runs == 0) *at = leaf;
    for (const auto& [p, position] : trace) {
      if (*at < 0) {
        *at = static_cast<std::int32_t>(nodes_.size());
        const std::int32_t made = *at;
        nodes_.push_back({p, std::vector<std::int32_t>(all[p].values.size(), -1)});
        at = &nodes_[static_cast<std::size_t>(made)].child[position];
      } else {
        at = &nodes_[static_cast<std::size_t>(*at)].child[position];
      }
      reads.insert(p);
    }
    *at = leaf;
    // the next trace
    while (!trace.empty() && trace.back().second + 1 == all[trace.back().first].values.size()) {
      position_of[trace.back().first] = -1;
      trace.pop_back();
    }
    if (trace.empty()) break;
    position_of[trace.back().first] = static_cast<std::int32_t>(++trace.back().second);
  }
  reads_.assign(reads.begin(), reads.end());
  for (std::uint32_t i = 0; i < reads_.size(); ++i) place_of_[reads_[i]] = i;
  std::set<Value> united;
  for (const auto& list : lists) united.insert(list.begin(), list.end());
  values_.assign(united.begin(), united.end());
  for (const auto& list : lists) {
    auto& positions = lists_.emplace_back();
    for (const auto& value : list)
      positions.push_back(
          static_cast<std::uint32_t>(std::lower_bound(values_.begin(), values_.end(), value) - values_.begin()));
  }
}

std::uint32_t TabulatedGenerator::list_for(const std::int64_t* positions) const {
  std::int32_t at = root_;
  while (at >= 0) {
    const Node& node = nodes_[static_cast<std::size_t>(at)];
    at = node.child[static_cast<std::size_t>(positions[place_of_[node.parameter]])];
  }
  return static_cast<std::uint32_t>(-1 - at);
}

const Value* SpaceNames::constant(std::string_view name) const {
  const auto found = constants_.find(name);
  return found == constants_.end() ? nullptr : &found->second;
}

std::optional<std::uint32_t> SpaceNames::parameter(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? std::nullopt : std::optional(found->second);
}

program::NameTable SpaceNames::table() const {
  program::NameTable names;
  names.parameter = [this](std::string_view name) { return parameter(name); };
  names.constant = [this](std::string_view name) { return constant(name); };
  return names;
}

void SpaceNames::unknown(const std::string& name, const std::string& where, const SourcePlace& place) const {
  std::vector<std::string> known;
  for (const auto& p : parameters_) known.push_back(p.name);
  for (const auto& [key, value] : constants_) known.push_back(key);
  const bool of_device =
      name.starts_with("device.") && constants_.lower_bound("device.") == constants_.lower_bound("device/");
  throw UserError(fmt::format("unknown name \"{}\" in {}{}", name, where,
                              of_device ? "; device limits are known once a device or a device profile is chosen"
                                        : suggestion(name, known)),
                  place);
}

}  // namespace ergotune
