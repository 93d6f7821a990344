#include "tune/plans/occupancy_reduction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "kernel/configure.hpp"

namespace ergotune {
namespace {

// Larger spaces are not enumerated.
constexpr std::uint64_t kEnumerable = 4'000'000;
constexpr std::size_t kMostCandidates = 4096;

/// The part of a configuration that belongs to one kernel: positions of the values of its parameters.
using Part = std::vector<std::uint32_t>;

/// One kernel with its distinct parts in the space, and the occupancy of each.
struct Candidates {
  std::string name;
  std::vector<std::size_t> parameters;
  std::vector<std::size_t> shape;  ///< those of `parameters`, by place, that determine the block: all if it has one
  std::vector<Part> parts;
  std::vector<std::optional<double>> occupancy;  ///< nullopt: unknown; 0: it does not compile or load

  std::string quantity() const { return name.empty() ? "occupancy" : "occupancy." + name; }
  bool known() const {
    return std::ranges::any_of(occupancy, [](const auto& o) { return o && *o > 0; });
  }
};

Part part_at(const Candidates& kernel, std::span<const std::uint32_t> positions) {
  Part part;
  for (const std::size_t p : kernel.parameters) part.push_back(positions[p]);
  return part;
}

/// Every kernel that has code parameters, with these.
std::vector<Candidates> kernels_in(const Problem& problem, const SearchSpace& space) {
  std::vector<Candidates> kernels;
  const auto& parameters = space.parameters();
  for (const Kernel& kernel : problem.kernels) {
    Candidates candidates;
    candidates.name = kernel.name;
    for (std::size_t p = 0; p < parameters.size(); ++p) {
      const bool own = kernel.name.empty() || parameters[p].name.starts_with(kernel.name + ".");
      if (own && parameters[p].kind == ParameterKind::code) candidates.parameters.push_back(p);
    }
    std::set<std::string> block;
    for (const Expression& size : kernel.launch.block)
      for (const std::string& name : size.names()) block.insert(kernel.name.empty() ? name : kernel.name + "." + name);
    for (std::size_t i = 0; i < candidates.parameters.size(); ++i)
      if (const std::string& name = parameters[candidates.parameters[i]].name;
          candidates.parameters.size() == 1 || block.contains(name) ||
          (block.empty() && name.starts_with("block_size")))
        candidates.shape.push_back(i);
    if (!candidates.parameters.empty()) kernels.push_back(std::move(candidates));
  }
  return kernels;
}

std::vector<Candidates> candidates_in(const Problem& problem, const SearchSpace& space) {
  std::vector<Candidates> kernels = kernels_in(problem, space);
  std::vector<std::set<Part>> seen(kernels.size());
  std::vector<std::uint32_t> positions(space.dimensions());
  for (ConfigurationIndex i = 0; i < space.size(); ++i) {
    space.values_at(i, positions);
    for (std::size_t k = 0; k < kernels.size(); ++k) seen[k].insert(part_at(kernels[k], positions));
  }
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    if (seen[k].size() > kMostCandidates)
      throw UserError(
          fmt::format("occupancy: {} has {} configurations of its own, each of which would be compiled; at most {}",
                      kernels[k].name.empty() ? "the kernel" : kernels[k].name, seen[k].size(), kMostCandidates));
    kernels[k].parts.assign(seen[k].begin(), seen[k].end());
    kernels[k].occupancy.resize(seen[k].size());
  }
  return kernels;
}

/// Has configurations compiled and returns the resources of their code.
class Probe : private Source {
 public:
  Probe(const SearchSpace& space, Ledger& ledger) : space_(space), ledger_(ledger) {}

  /// For each kernel, the candidate that a probe contains.
  using Choice = std::vector<std::size_t>;

  std::vector<Measurement> run(const std::vector<Candidates>& kernels, const std::vector<Choice>& choices) {
    wanted_.clear();
    for (const Choice& choice : choices) wanted_.push_back(configuration(kernels, choice));
    results_.assign(wanted_.size(), {});
    requested_ = 0;
    ledger_.drive(*this);
    return results_;
  }

 private:
  std::vector<ConfigurationRequest> next(std::size_t room) override {
    std::vector<ConfigurationRequest> list;
    for (; requested_ < wanted_.size() && list.size() < room; ++requested_) {
      ConfigurationRequest wanted;
      wanted.index = requested_;
      wanted.resources_of = wanted_[requested_];
      list.push_back(std::move(wanted));
    }
    return list;
  }
  void take(const ConfigurationRequest& wanted, const Measurement& measurement, bool) override {
    results_[wanted.index] = measurement;
  }

  Configuration configuration(const std::vector<Candidates>& kernels, const Choice& choice) const {
    const auto& parameters = space_.parameters();
    Configuration values;
    for (const Parameter& parameter : parameters) values.push_back(*parameter.default_or_first());
    for (std::size_t k = 0; k < kernels.size(); ++k)
      for (std::size_t i = 0; i < kernels[k].parameters.size(); ++i) {
        const std::size_t p = kernels[k].parameters[i];
        values[p] = parameters[p].values[kernels[k].parts[choice[k]][i]];
      }
    return values;
  }

  const SearchSpace& space_;
  Ledger& ledger_;
  std::vector<Configuration> wanted_;
  std::vector<Measurement> results_;
  std::size_t requested_ = 0;
};

void take(std::vector<Candidates>& kernels, const Probe::Choice& choice, const Measurement& measurement) {
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const auto found = measurement.quantities.find(kernels[k].quantity());
    if (found != measurement.quantities.end()) kernels[k].occupancy[choice[k]] = found->second.value;
  }
}

/// Probes the candidates of all kernels together: as many probes as the kernel with the most candidates has. If one
/// candidate does not compile or load, the others of its probe are probed again beside candidates that work.
void measure_occupancy(std::vector<Candidates>& kernels, const SearchSpace& space, Ledger& ledger) {
  Probe probe(space, ledger);
  std::size_t most = 0;
  for (const Candidates& kernel : kernels) most = std::max(most, kernel.parts.size());
  std::vector<Probe::Choice> choices(most, Probe::Choice(kernels.size()));
  for (std::size_t i = 0; i < most; ++i)
    for (std::size_t k = 0; k < kernels.size(); ++k) choices[i][k] = std::min(i, kernels[k].parts.size() - 1);
  const std::vector<Measurement> first = probe.run(kernels, choices);
  std::optional<Probe::Choice> works;
  std::set<std::pair<std::size_t, std::size_t>> open;  // kernel, candidate
  for (std::size_t i = 0; i < most; ++i) {
    if (first[i].ok()) {
      take(kernels, choices[i], first[i]);
      works = choices[i];
    } else {
      for (std::size_t k = 0; k < kernels.size(); ++k) open.emplace(k, choices[i][k]);
    }
  }
  std::vector<Probe::Choice> again;
  for (const auto& [k, candidate] : open) {
    if (kernels[k].occupancy[candidate]) continue;
    again.push_back(works.value_or(Probe::Choice(kernels.size(), 0)));
    again.back()[k] = candidate;
  }
  const std::vector<Measurement> second =
      works && kernels.size() > 1 ? probe.run(kernels, again) : std::vector<Measurement>(again.size());
  for (std::size_t i = 0; i < again.size(); ++i)
    if (second[i].ok()) take(kernels, again[i], second[i]);
  for (const auto& [k, candidate] : open)
    if (!kernels[k].occupancy[candidate]) kernels[k].occupancy[candidate] = 0;
}

/// Gives each candidate the highest occupancy of its block shape.
void share_by_shape(Candidates& kernel) {
  const auto shape_of = [&](std::size_t i) {
    Part shape;
    for (const std::size_t p : kernel.shape) shape.push_back(kernel.parts[i][p]);
    return shape;
  };
  std::map<Part, std::optional<double>> highest;
  for (std::size_t i = 0; i < kernel.parts.size(); ++i) {
    auto& so_far = highest[shape_of(i)];
    so_far = std::max(so_far, kernel.occupancy[i]);
  }
  for (std::size_t i = 0; i < kernel.parts.size(); ++i) kernel.occupancy[i] = highest[shape_of(i)];
}

/// The candidates above the bound; where there is none, those of the highest occupancy, or all (`or_all`).
std::vector<std::size_t> promising(const Candidates& kernel, double bound, bool or_all) {
  double highest = 0;
  for (const auto& occupancy : kernel.occupancy) highest = std::max(highest, occupancy.value_or(0));
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < kernel.parts.size(); ++i) {
    const double occupancy = kernel.occupancy[i].value_or(0);
    const bool without_any = highest <= bound && (or_all || occupancy == highest);
    if (!kernel.known() || occupancy > bound || without_any) kept.push_back(i);
  }
  return kept;
}

/// The kept values of a kernel's only parameter, by occupancy and size.
std::vector<Value> ordered_values(const Candidates& kernel, std::vector<std::size_t> kept, const Parameter& parameter) {
  const auto value = [&](std::size_t i) -> const Value& { return parameter.values[kernel.parts[i][0]]; };
  std::ranges::stable_sort(kept, [&](std::size_t a, std::size_t b) {
    const double one = kernel.occupancy[a].value_or(0), other = kernel.occupancy[b].value_or(0);
    if (one != other) return one > other;
    return value(a).is_number() && value(b).is_number() && value(b) < value(a);
  });
  std::vector<Value> values;
  for (const std::size_t i : kept) values.push_back(value(i));
  return values;
}

}  // namespace

bool has_one_parameter_each(const Problem& problem, const SearchSpace& space) {
  return std::ranges::all_of(kernels_in(problem, space),
                             [](const Candidates& kernel) { return kernel.parameters.size() == 1; });
}

SearchSpace reduce_by_occupancy(const Problem& problem, const SearchSpace& space, Ledger& ledger, double bound,
                                std::vector<std::string>& notes, bool by_shape) {
  if (!(bound > 0 && bound < 1))
    throw UserError(fmt::format("occupancy {} is not a bound: it is a share above 0 and below 1, such as 0.8", bound));
  if (space.size() > kEnumerable)
    throw UserError(fmt::format("a space of {} configurations is too large to be reduced by occupancy", space.size()));
  std::vector<Candidates> kernels = candidates_in(problem, space);
  measure_occupancy(kernels, space, ledger);
  if (by_shape)
    for (Candidates& kernel : kernels) share_by_shape(kernel);
  std::vector<Parameter> parameters = space.parameters();
  std::vector<std::set<Part>> kept(kernels.size());
  std::string message;
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    const std::vector<std::size_t> stay = promising(kernels[k], bound, by_shape);
    for (const std::size_t i : stay) kept[k].insert(kernels[k].parts[i]);
    const std::string name = kernels[k].name.empty() ? "the kernel" : kernels[k].name;
    message += fmt::format("{}{} {} of {}{}", message.empty() ? "" : ", ", name, stay.size(), kernels[k].parts.size(),
                           kernels[k].known() ? "" : " (its occupancy is unknown here)");
    if (kernels[k].parameters.size() != 1) continue;
    Parameter& parameter = parameters[kernels[k].parameters.front()];
    parameter.values = ordered_values(kernels[k], stay, parameter);
    if (parameter.default_value &&
        std::ranges::find(parameter.values, *parameter.default_value) == parameter.values.end())
      parameter.default_value.reset();
  }
  std::vector<Configuration> list;
  std::vector<std::uint32_t> positions(space.dimensions());
  for (ConfigurationIndex i = 0; i < space.size(); ++i) {
    space.values_at(i, positions);
    bool stays = true;
    for (std::size_t k = 0; k < kernels.size() && stays; ++k) stays = kept[k].contains(part_at(kernels[k], positions));
    if (stays) list.push_back(space.configuration(i));
  }
  if (list.empty()) throw UserError("occupancy: no configuration of the space is left");
  notes.push_back(fmt::format("occupancy above {:g} %: {} of {} configurations are searched ({})", 100 * bound,
                              list.size(), space.size(), message));
  return SearchSpace::from_configurations(std::move(parameters), list);
}

}  // namespace ergotune
