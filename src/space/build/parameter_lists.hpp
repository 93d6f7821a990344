// Determines the values of parameters for building a space: given lists, ranges and generators.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/space.hpp"
#include "space/build/layer_builder.hpp"
#include "space/expression/program.hpp"

namespace ergotune {

class SpaceNames {
 public:
  /// Both arguments must outlive this object; parameters are unknown before add().
  SpaceNames(const std::vector<Parameter>& parameters, const Constants& constants)
      : parameters_(parameters), constants_(constants) {}

  void add(std::uint32_t parameter) { index_.emplace(parameters_[parameter].name, parameter); }
  const Value* constant(std::string_view name) const;
  std::optional<std::uint32_t> parameter(std::string_view name) const;
  bool knows(std::string_view name) const { return parameter(name) || constant(name) != nullptr; }
  const Constants& constants() const { return constants_; }
  program::NameTable table() const;
  /// Throws UserError for an unknown name. `where`: "the restriction ...".
  [[noreturn]] void unknown(const std::string& name, const std::string& where, const SourcePlace& place) const;

 private:
  const std::vector<Parameter>& parameters_;
  const Constants& constants_;
  std::map<std::string, std::uint32_t, std::less<>> index_;
};

/// Table of a generator's results. The generator runs once for each combination of values that it reads: its lookups
/// are recorded, so that a generator that reads one of ten parameters runs once per value of that one.
class TabulatedGenerator {
 public:
  /// Runs `generator` for the parameters with an index below `count`, whose value lists must be known. Throws UserError
  /// if it reads too many combinations.
  TabulatedGenerator(const Parameter& parameter, const ValueGenerator& generator, const std::vector<Parameter>& all,
                     std::uint32_t count, const Constants& constants);

  /// Indices of the parameters that it reads, ascending.
  const std::vector<std::uint32_t>& reads() const { return reads_; }
  /// All values that it yields, sorted.
  const std::vector<Value>& values() const { return values_; }
  /// The lists that it yields, as ascending positions in values().
  const std::vector<std::vector<std::uint32_t>>& lists() const { return lists_; }
  /// Returns the index of the list for the positions of the values of reads(), in that order.
  std::uint32_t list_for(const std::int64_t* positions) const;

 private:
  struct Node {
    std::uint32_t parameter = 0;      // the parameter that is read
    std::vector<std::int32_t> child;  // by position; a list is stored as -1 - its index
  };
  std::vector<Node> nodes_;
  std::int32_t root_ = 0;
  std::vector<std::uint32_t> reads_;
  std::vector<std::uint32_t> place_of_;  // by parameter: position in reads_
  std::vector<Value> values_;
  std::vector<std::vector<std::uint32_t>> lists_;
};

/// Returns all values that a dependent range yields for any values of the parameters that it uses, sorted.
std::vector<Value> range_values(const Parameter& parameter, const std::vector<Parameter>& all, std::uint32_t count,
                                const Constants& constants);

/// Returns the range as a generator, for ranges that cannot be compiled.
ValueGenerator as_generator(const Parameter& parameter);

class ParameterLists {
 public:
  /// Fills the value lists of `parameters`, which must outlive this object, as must `names`; this object must outlive
  /// the programs passed to candidates().
  ParameterLists(std::vector<Parameter>& parameters, SpaceNames& names) : parameters_(parameters), names_(names) {}

  /// Fills all value lists (for ranges and generators, the union of what they yield) and adds the parameters to
  /// `names`. Throws UserError.
  void resolve();
  /// Returns compiled candidates of each parameter after a prefix.
  std::vector<Candidates> candidates(program::Program& program);

 private:
  void resolve_range(std::uint32_t parameter);
  void tabulate(std::uint32_t parameter, const ValueGenerator& generator);
  Candidates compile_range(program::Program& program, const DependentRange& range) const;

  std::vector<Parameter>& parameters_;
  SpaceNames& names_;
  std::vector<std::unique_ptr<TabulatedGenerator>> generators_;
  std::vector<std::optional<DependentRange>> ranges_;
};

}  // namespace ergotune
