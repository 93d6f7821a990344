// All configurations that meet the restrictions, numbered 0 .. size()-1 in lexicographic order of the
// parameters as given (each parameter's values in their given order). They are kept as a shared decision
// diagram with counts, whatever their number; on request small spaces are also materialised, which makes
// reading them a few times faster.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ergotune/base/random.hpp"
#include "ergotune/space/parameter.hpp"

namespace ergotune {

/// Position of a configuration in a search space.
using ConfigurationIndex = std::uint64_t;

/// Which configurations count as neighbours.
enum class Neighbourhood {
  hamming,            ///< one parameter has another value
  adjacent,           ///< every parameter keeps its value or takes one next to it (in the parameter's list)
  strictly_adjacent,  ///< one parameter takes the value next to its own, the others keep theirs
};

/// How a space is built.
struct SpaceOptions {
  /// Problem constants and device properties, seen by restrictions and ranges.
  Constants constants;
  /// Spaces of up to this many configurations are also materialised: values_at() then reads a table.
  std::uint64_t materialise_limit = 0;
  /// Threads for building; 0 means all cores where it pays.
  int threads = 0;
};

/// What one restriction does to the space.
struct RestrictionEffect {
  std::string label;
  std::string expression;
  RestrictionClass restriction_class = RestrictionClass::correctness;
  /// Configurations that it alone removes from the product of the parameters' values, dependent ranges
  /// observed (as a real: products exceed 2^64). NaN where counting it takes too much.
  double removed_alone = 0;
  /// Configurations that only it removes: the growth of the space without it. 0 means redundant; NaN as
  /// above.
  double removed_only_by_it = 0;
  bool redundant = false;
};

class SearchSpace {
 public:
  /// Builds. Throws UserError for an unknown name, a division by zero in a restriction, a space over 2^63, a
  /// parameter with no values. An empty space is not an error here: size() is 0 and why_empty() says why.
  static SearchSpace build(std::vector<Parameter> parameters, std::vector<Restriction> restrictions,
                           const SpaceOptions& options = {});
  /// The space of exactly these configurations (recorded data without its restrictions), in the order of its
  /// parameters' values. Duplicates are dropped.
  static SearchSpace from_configurations(std::vector<Parameter> parameters,
                                         const std::vector<Configuration>& list);

  SearchSpace(SearchSpace&&) noexcept;
  SearchSpace& operator=(SearchSpace&&) noexcept;
  ~SearchSpace();

  /// Number of parameters.
  std::size_t dimensions() const;
  /// As built: `values` holds every value the parameter can take (for a dependent range, the union, sorted).
  const std::vector<Parameter>& parameters() const;
  /// Position of a parameter by name.
  std::optional<std::size_t> parameter_index(std::string_view name) const;
  /// Number of valid configurations.
  std::uint64_t size() const;
  bool empty() const { return size() == 0; }
  /// Product of the parameters' value counts, as a real since it may exceed 2^64.
  double cartesian_size() const;
  bool materialised() const;
  std::size_t memory_bytes() const;
  double build_seconds() const;

  /// The configuration at `index` < size() as positions in the parameters' value lists; out.size() ==
  /// dimensions().
  void values_at(ConfigurationIndex index, std::span<std::uint32_t> out) const;
  Configuration configuration(ConfigurationIndex index) const;
  /// The index of a configuration given by value positions; nullopt when it is not in the space.
  std::optional<ConfigurationIndex> index_of(std::span<const std::uint32_t> values) const;
  std::optional<ConfigurationIndex> index_of(const Configuration& configuration) const;
  bool contains(std::span<const std::uint32_t> values) const { return index_of(values).has_value(); }

  /// Appends nothing but the valid neighbours of `index` to a cleared `out`, ascending, without `index`
  /// itself.
  void neighbours(ConfigurationIndex index, Neighbourhood kind, std::vector<ConfigurationIndex>& out) const;
  /// A uniformly random configuration. The space must not be empty.
  ConfigurationIndex sample(Random& random) const { return random.below(size()); }
  /// min(count, size()) different configurations, uniform without replacement.
  std::vector<ConfigurationIndex> sample_distinct(std::size_t count, Random& random) const;
  /// min(count, size()) different configurations, spread as a Latin hypercube over the value positions and
  /// moved to the nearest valid configuration.
  std::vector<ConfigurationIndex> latin_hypercube(std::size_t count, Random& random) const;
  /// The same from a scrambled and shifted Halton sequence (Halton, 1960), one prime base per parameter.
  std::vector<ConfigurationIndex> low_discrepancy(std::size_t count, Random& random) const;
  /// The valid configuration nearest to a point (sum of distances in value positions); for strategies that
  /// move in a continuous space.
  ConfigurationIndex nearest(std::span<const double> value_positions) const;

  /// The effect of each restriction (rebuilds the space once per restriction).
  std::vector<RestrictionEffect> explain() const;
  /// Why there are no configurations: the smallest set of restrictions found that contradict each other, in
  /// words.
  std::string why_empty() const;

 private:
  struct State;
  explicit SearchSpace(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// "name=value, name=value" for messages.
std::string describe(const std::vector<Parameter>& parameters, const Configuration& configuration);

}  // namespace ergotune
