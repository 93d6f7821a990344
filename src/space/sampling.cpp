// Samples of a search space: without replacement, Latin hypercube, and low-discrepancy.
#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "space/search_space_state.hpp"

namespace ergotune {

std::vector<ConfigurationIndex> SearchSpace::sample_distinct(std::size_t count, Random& random) const {
  const std::uint64_t total = size();
  const std::uint64_t wanted = std::min<std::uint64_t>(count, total);
  std::vector<ConfigurationIndex> result;
  result.reserve(wanted);
  if (total <= 4 * wanted) {  // the beginning of a shuffle
    std::vector<ConfigurationIndex> all(total);
    for (std::uint64_t i = 0; i < total; ++i) all[i] = i;
    for (std::uint64_t i = 0; i < wanted; ++i) {
      std::swap(all[i], all[i + random.below(total - i)]);
      result.push_back(all[i]);
    }
    return result;
  }
  std::unordered_set<ConfigurationIndex> taken;
  while (result.size() < wanted) {
    const ConfigurationIndex index = random.below(total);
    if (taken.insert(index).second) result.push_back(index);
  }
  return result;
}

namespace {

// Moves a point in value positions to the nearest configuration that is not taken; if that is taken, to a configuration
// near it, or to any.
class Spreader {
 public:
  Spreader(const SearchSpace& space, Random& random) : space_(space), random_(random) {}

  void add(std::span<const double> point) {
    ConfigurationIndex index = space_.nearest(point);
    if (!taken_.insert(index).second) {
      space_.neighbours(index, Neighbourhood::strictly_adjacent, neighbours_);
      if (std::ranges::none_of(neighbours_, [&](auto n) { return !taken_.contains(n); }))
        space_.neighbours(index, Neighbourhood::hamming, neighbours_);
      std::erase_if(neighbours_, [&](auto n) { return taken_.contains(n); });
      if (!neighbours_.empty()) {
        index = neighbours_[random_.below(neighbours_.size())];
      } else {
        index = random_.below(space_.size());
        while (taken_.contains(index)) index = index + 1 < space_.size() ? index + 1 : 0;
      }
      taken_.insert(index);
    }
    result_.push_back(index);
  }
  std::vector<ConfigurationIndex> take() { return std::move(result_); }

 private:
  const SearchSpace& space_;
  Random& random_;
  std::unordered_set<ConfigurationIndex> taken_;
  std::vector<ConfigurationIndex> neighbours_, result_;
};

// Converts a share of [0, 1) to a position: each of n values has an interval of length 1/n around it.
double to_position(double share, std::size_t values) { return share * static_cast<double>(values) - 0.5; }

std::vector<std::uint32_t> first_primes(std::size_t count) {
  std::vector<std::uint32_t> primes;
  for (std::uint32_t n = 2; primes.size() < count; ++n)
    if (std::ranges::none_of(primes, [n](auto p) { return p * p <= n && n % p == 0; })) primes.push_back(n);
  return primes;
}

}  // namespace

std::vector<ConfigurationIndex> SearchSpace::latin_hypercube(std::size_t count, Random& random) const {
  const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(count, size()));
  std::vector<std::vector<std::uint32_t>> stratum(dimensions(), std::vector<std::uint32_t>(wanted));
  for (auto& column : stratum) {
    for (std::uint32_t i = 0; i < wanted; ++i) column[i] = i;
    random.shuffle(std::span(column));
  }
  Spreader spreader(*this, random);
  std::vector<double> point(dimensions());
  for (std::size_t i = 0; i < wanted; ++i) {
    for (std::size_t p = 0; p < point.size(); ++p)
      point[p] =
          to_position((stratum[p][i] + random.uniform()) / static_cast<double>(wanted), parameters()[p].values.size());
    spreader.add(point);
  }
  return spreader.take();
}

// Halton's sequence with a random permutation of the digits per dimension; without it, the higher dimensions are
// correlated at the sample sizes used here.
std::vector<ConfigurationIndex> SearchSpace::low_discrepancy(std::size_t count, Random& random) const {
  const std::size_t wanted = static_cast<std::size_t>(std::min<std::uint64_t>(count, size()));
  const auto primes = first_primes(dimensions());
  std::vector<std::vector<std::uint32_t>> digit(dimensions());
  std::vector<double> shift(dimensions());
  for (std::size_t p = 0; p < digit.size(); ++p) {
    digit[p].resize(primes[p]);
    for (std::uint32_t d = 0; d < primes[p]; ++d) digit[p][d] = d;
    random.shuffle(std::span(digit[p]).subspan(1));  // 0 is fixed, since the infinite tail of zeros must stay zero
    shift[p] = random.uniform();
  }
  Spreader spreader(*this, random);
  std::vector<double> point(dimensions());
  for (std::size_t i = 0; i < wanted; ++i) {
    for (std::size_t p = 0; p < point.size(); ++p) {
      double share = 0, place = 1.0 / primes[p];
      for (std::size_t n = i; n > 0; n /= primes[p], place /= primes[p]) share += digit[p][n % primes[p]] * place;
      share += shift[p];
      point[p] = to_position(share - std::floor(share), parameters()[p].values.size());
    }
    spreader.add(point);
  }
  return spreader.take();
}

namespace {

// Branch and bound over one chain: children are tried nearest first. The remaining cost is at least the distance to the
// nearest value of each remaining parameter, and a node that was reached before at no greater cost cannot improve the
// result.
class NearestWalk {
 public:
  NearestWalk(const Diagram& chain, const std::vector<Parameter>& parameters, std::span<const double> point)
      : chain_(chain), point_(point), rest_(chain.parameters().size() + 1, 0.0) {
    for (std::size_t l = chain.parameters().size(); l-- > 0;) {
      const std::uint32_t p = chain.parameters()[l];
      const double last = static_cast<double>(parameters[p].values.size() - 1);
      rest_[l] = rest_[l + 1] + std::fabs(point[p] - std::clamp(std::round(point[p]), 0.0, last));
    }
    path_.resize(chain.parameters().size());
  }

  void run() { walk(0, chain_.root(), 0); }
  void store(std::vector<std::uint32_t>& values) const {
    for (std::size_t l = 0; l < best_.size(); ++l) values[chain_.parameters()[l]] = best_[l];
  }

 private:
  void walk(std::size_t level, Diagram::Node node, double cost) {
    if (level == path_.size()) {
      best_cost_ = cost;
      best_ = path_;
      return;
    }
    if (cost + rest_[level] >= best_cost_) return;
    if (level > 0) {
      const auto [seen, fresh] = reached_.try_emplace((static_cast<std::uint64_t>(level) << 32) | node, cost);
      if (!fresh) {
        if (seen->second <= cost) return;
        seen->second = cost;
      }
    }
    const double at = point_[chain_.parameters()[level]];
    // outwards from the point in both directions
    const std::uint32_t degree = chain_.degree(level, node);
    std::uint32_t low = 0, high = degree;
    while (low < high) {
      const std::uint32_t middle = (low + high) / 2;
      if (static_cast<double>(chain_.edge(level, node, middle).position) < at)
        low = middle + 1;
      else
        high = middle;
    }
    std::uint32_t left = low, right = low;
    while (left > 0 || right < degree) {
      const double to_left =
          left > 0 ? at - static_cast<double>(chain_.edge(level, node, left - 1).position) : HUGE_VAL;
      const double to_right =
          right < degree ? static_cast<double>(chain_.edge(level, node, right).position) - at : HUGE_VAL;
      const auto edge = chain_.edge(level, node, to_left <= to_right ? --left : right++);
      const double distance = std::min(to_left, to_right);
      if (cost + distance + rest_[level + 1] >= best_cost_) return;
      path_[level] = edge.position;
      walk(level + 1, edge.child, cost + distance);
    }
  }

  const Diagram& chain_;
  std::span<const double> point_;
  std::vector<double> rest_;
  std::vector<std::uint32_t> path_, best_;
  std::unordered_map<std::uint64_t, double> reached_;  // by level and node
  double best_cost_ = HUGE_VAL;
};

}  // namespace

ConfigurationIndex SearchSpace::nearest(std::span<const double> value_positions) const {
  std::vector<double> point(value_positions.begin(), value_positions.end());
  point.resize(dimensions(), 0.0);
  for (std::size_t p = 0; p < point.size(); ++p) {
    const double last = static_cast<double>(parameters()[p].values.size() - 1);
    point[p] = std::isnan(point[p]) ? 0.0 : std::clamp(point[p], -0.5, last + 0.5);
  }
  std::vector<std::uint32_t> values(dimensions());
  for (const auto& chain : state_->built.chains) {
    NearestWalk walk(chain, parameters(), point);
    walk.run();
    walk.store(values);
  }
  return index_of(values).value_or(0);
}

}  // namespace ergotune
