// The values that parameters can take while a space is built: lists as given, ranges and generators worked
// out.
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
  /// Both outlive this object; no parameter is known before add().
  SpaceNames(const std::vector<Parameter>& parameters, const Constants& constants)
      : parameters_(parameters), constants_(constants) {}

  void add(std::uint32_t parameter) { index_.emplace(parameters_[parameter].name, parameter); }
  const Value* constant(std::string_view name) const;
  std::optional<std::uint32_t> parameter(std::string_view name) const;
  bool knows(std::string_view name) const { return parameter(name) || constant(name) != nullptr; }
  const Constants& constants() const { return constants_; }
  program::NameTable table() const;
  /// Throws the UserError for a name that is none of them. `where`: "the restriction ...".
  [[noreturn]] void unknown(const std::string& name, const std::string& where, const SourcePlace& place) const;

 private:
  const std::vector<Parameter>& parameters_;
  const Constants& constants_;
  std::map<std::string, std::uint32_t, std::less<>> index_;
};

/// A generator tabulated by what it reads. It is run once for each combination of values that it can tell
/// apart: its look-ups are watched, so that a generator that reads one of ten parameters is run once per
/// value of that one.
class TabulatedGenerator {
 public:
  /// Runs `generator` over the parameters before `count`, whose value lists must be known. Throws UserError
  /// when it reads too much.
  TabulatedGenerator(const Parameter& parameter, const ValueGenerator& generator, const std::vector<Parameter>& all,
                     std::uint32_t count, const Constants& constants);

  /// The parameters it reads, ascending.
  const std::vector<std::uint32_t>& reads() const { return reads_; }
  /// Every value it can give, sorted.
  const std::vector<Value>& values() const { return values_; }
  /// The lists it can give, as ascending positions in values().
  const std::vector<std::vector<std::uint32_t>>& lists() const { return lists_; }
  /// Which list it gives; positions of the values of reads().
  std::uint32_t list_for(const std::int64_t* positions) const;

 private:
  struct Node {
    std::uint32_t parameter = 0;      // read here
    std::vector<std::int32_t> child;  // by position; a list is stored as -1 - its number
  };
  std::vector<Node> nodes_;
  std::int32_t root_ = 0;
  std::vector<std::uint32_t> reads_;
  std::vector<std::uint32_t> place_of_;  // of a parameter in reads_
  std::vector<Value> values_;
  std::vector<std::vector<std::uint32_t>> lists_;
};

/// Every value a dependent range can give over all values of the parameters it names, sorted.
std::vector<Value> range_values(const Parameter& parameter, const std::vector<Parameter>& all, std::uint32_t count,
                                const Constants& constants);

/// The range as a generator, for ranges that cannot be compiled.
ValueGenerator as_generator(const Parameter& parameter);

class ParameterLists {
 public:
  /// `parameters` get their value lists; they, and `names`, outlive this object, and this object the programs
  /// that candidates() was compiled into.
  ParameterLists(std::vector<Parameter>& parameters, SpaceNames& names) : parameters_(parameters), names_(names) {}

  /// Fills every value list (of ranges and generators the union of what they give) and names the parameters.
  /// Throws UserError.
  void resolve();
  /// Which values each parameter can take after a prefix, compiled.
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
