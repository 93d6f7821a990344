#include "space/build/parameter_lists.hpp"

#include <fmt/format.h>

#include <algorithm>

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
  if (std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end()) return;
  std::vector<Value> kept;
  for (auto& value : values)
    if (std::find(kept.begin(), kept.end(), value) == kept.end()) kept.push_back(value);
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

}  // namespace ergotune
