// Seeded spaces that are hard to search: the best configurations lie beside those that fail, parameters are
// idle, values lie on plateaus, and there are several basins. Nothing of a real kernel or device is in them.
//
// A configuration uses up resources, each a weighted sum of some parameters (the logarithm of a product of
// sizes, as shared memory or registers are); past a limit it fails, short of it more is better. The margin
// of the optimum is set; everything else about it is drawn.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/random.hpp"
#include "ergotune/space.hpp"

namespace ergotune::cliffs {

struct Options {
  std::uint64_t seed = 1;
  std::size_t parameters = 10;  ///< 4 to 15
  double failing = 0.3;         ///< share of the configurations, about; 0 to 0.75
  double margin = 0.05;         ///< of the optimum to each limit, share of the resource's span
  std::size_t idle = 3;         ///< parameters without effect
  std::size_t basins = 2;
  double plateau = 0;       ///< height of the steps of the value's logarithm; 0 for none
  double roughness = 0.01;  ///< spread of what no model can know, of the value's logarithm
  double largest = 6e5;     ///< configurations at most
};

/// A draw over all that the options allow.
inline Options draw_options(std::uint64_t seed) {
  Random random(seed * 7919 + 17);
  Options o;
  o.seed = seed;
  o.parameters = 4 + random.below(12);
  o.failing = random.chance(0.15) ? 0.0 : 0.75 * random.uniform();
  o.margin = 0.12 * random.uniform();
  o.idle = random.below(std::max<std::size_t>(1, o.parameters / 2));
  o.basins = 1 + random.below(4);
  o.plateau = random.chance(0.3) ? 0.02 + 0.03 * random.uniform() : 0.0;
  o.roughness = 0.02 * random.uniform();
  o.largest = std::exp(std::log(2e3) + random.uniform() * std::log(300.0));
  return o;
}

class Space {
 public:
  explicit Space(const Options& options) : options_(options), random_(options.seed) {
    std::vector<Parameter> parameters = draw_parameters();
    space_.emplace(SearchSpace::build(std::move(parameters), {}));
    draw_effects();
    draw_resources();
    draw_basins();
    values_.reserve(space_->size());
    std::vector<std::uint32_t> at(space_->dimensions());
    for (ConfigurationIndex i = 0; i < space_->size(); ++i) {
      space_->values_at(i, at);
      values_.push_back(evaluate(at));
      if (std::isfinite(values_.back()))
        optimum_ = std::min(optimum_, values_.back()), worst_ = std::max(worst_, values_.back());
      else
        ++failed_;
    }
  }
  const SearchSpace& space() const { return *space_; }
  const Options& options() const { return options_; }
  /// To be minimised, positive; infinity for a failure.
  double value(ConfigurationIndex index) const { return values_[index]; }
  double optimum() const { return optimum_; }
  double worst() const { return worst_; }
  double failing() const { return static_cast<double>(failed_) / static_cast<double>(space_->size()); }
  /// Whether a parameter changes anything.
  bool idle(std::size_t parameter) const { return std::ranges::find(active_, parameter) == active_.end(); }

 private:
  struct Resource {
    std::vector<double> weight;  // per parameter, 0 where it does not matter
    double limit = 0, span = 1, pull = 1;
    double margin(const std::vector<double>& u) const {
      return (limit - std::inner_product(u.begin(), u.end(), weight.begin(), 0.0)) / span;
    }
  };

  std::vector<Parameter> draw_parameters() {
    std::vector<std::size_t> counts(options_.parameters);
    for (auto& count : counts) count = 2 + random_.below(options_.parameters > 9 ? 5 : 11);
    const auto size = [&] {
      return std::accumulate(counts.begin(), counts.end(), 1.0,
                             [](double a, std::size_t b) { return a * static_cast<double>(b); });
    };
    for (int attempt = 0; size() > options_.largest && attempt < 1000; ++attempt) {
      auto& count = counts[random_.below(counts.size())];
      if (count > 2) --count;
    }
    std::vector<Parameter> parameters;
    for (std::size_t p = 0; p < counts.size(); ++p) {
      Parameter parameter;
      parameter.name = "p" + std::to_string(p);
      const std::uint64_t kind = random_.below(5);
      for (std::size_t v = 0; v < counts[p]; ++v) {
        const auto n = static_cast<std::int64_t>(v);
        if (kind == 0 && counts[p] < 5)
          parameter.values.emplace_back("choice_" + std::to_string(v));
        else if (kind <= 2)
          parameter.values.emplace_back(std::int64_t{8} << n);
        else if (kind == 3)
          parameter.values.emplace_back(n);
        else
          parameter.values.emplace_back(16 * (n + 1));
      }
      nominal_.push_back(kind == 0 && counts[p] < 5);
      parameters.push_back(std::move(parameter));
    }
    return parameters;
  }

  void draw_effects() {
    std::vector<std::size_t> order(options_.parameters);
    std::iota(order.begin(), order.end(), std::size_t{0});
    random_.shuffle(std::span<std::size_t>(order));
    active_.assign(order.begin(), order.end() - static_cast<std::ptrdiff_t>(std::min(options_.idle, order.size() - 3)));
    std::ranges::sort(active_);
    weight_.assign(options_.parameters, 0.0);
    double sum = 0;
    for (const std::size_t p : active_) sum += weight_[p] = std::exp(0.8 * random_.normal());
    for (double& w : weight_) w *= 2.0 / sum;
    // what a choice among texts has for a coordinate is no order of theirs
    for (std::size_t p = 0; p < options_.parameters; ++p) {
      std::vector<double> u;
      const double last = static_cast<double>(space_->parameters()[p].values.size() - 1);
      for (double v = 0; v <= last; ++v) u.push_back(v / last);
      if (nominal_[p]) random_.shuffle(std::span<double>(u));
      coordinates_.push_back(std::move(u));
    }
  }

  void draw_resources() {
    if (options_.failing <= 0) return;
    const std::size_t count = 1 + random_.below(2);
    for (std::size_t r = 0; r < count; ++r) {
      Resource resource;
      resource.weight.assign(options_.parameters, 0.0);
      std::vector<std::size_t> order = active_;
      random_.shuffle(std::span<std::size_t>(order));
      const std::size_t used = std::min<std::size_t>(order.size(), 2 + random_.below(3));
      for (std::size_t i = 0; i < used; ++i)
        resource.weight[order[i]] = (0.5 + random_.uniform()) * (random_.chance(0.8) ? 1 : -1);
      resource.pull = 0.5 + 1.5 * random_.uniform();
      std::vector<double> amounts;
      for (int i = 0; i < 5000; ++i) {
        const auto u = point(space_->sample(random_));
        amounts.push_back(std::inner_product(u.begin(), u.end(), resource.weight.begin(), 0.0));
      }
      std::ranges::sort(amounts);
      const double kept = std::pow(1 - options_.failing, 1.0 / static_cast<double>(count));
      resource.limit = amounts[static_cast<std::size_t>(kept * 4999)] + 1e-9;
      resource.span = amounts.back() - amounts.front() + 1e-9;
      resources_.push_back(std::move(resource));
    }
  }

  void draw_basins() {
    double nearest = std::numeric_limits<double>::infinity();
    for (int i = 0; i < 3000; ++i) {  // the optimum has its margin
      auto u = point(space_->sample(random_));
      double off = 0;
      for (const Resource& r : resources_) {
        const double margin = r.margin(u);
        off += margin < 0 ? 10 : std::abs(margin - options_.margin);
      }
      if (off >= nearest) continue;
      nearest = off;
      centres_.assign(1, std::move(u));
    }
    while (centres_.size() < options_.basins) centres_.push_back(point(space_->sample(random_)));
  }

  std::vector<double> point(ConfigurationIndex index) const {
    std::vector<std::uint32_t> at(space_->dimensions());
    space_->values_at(index, at);
    return coordinates(at);
  }
  std::vector<double> coordinates(const std::vector<std::uint32_t>& at) const {
    std::vector<double> u(at.size());
    for (std::size_t p = 0; p < at.size(); ++p) u[p] = coordinates_[p][at[p]];
    return u;
  }

  double evaluate(const std::vector<std::uint32_t>& at) const {
    const std::vector<double> u = coordinates(at);
    double pulled = 0;
    for (const Resource& r : resources_) {
      const double margin = r.margin(u);
      if (margin < 0) return std::numeric_limits<double>::infinity();
      pulled += r.pull * std::abs(margin - r.margin(centres_.front()));
    }
    double height = std::numeric_limits<double>::infinity();
    for (std::size_t b = 0; b < centres_.size(); ++b) {
      double here = b == 0 ? 0.0 : 0.04 + 0.06 * static_cast<double>(b);
      for (const std::size_t p : active_) {
        const double off = std::abs(u[p] - centres_[b][p]);
        here += weight_[p] * (nominal_[p] ? off : 0.5 * off + 0.5 * off * off);
      }
      height = std::min(height, here);
    }
    double logarithm = pulled + height;
    if (options_.plateau > 0) logarithm = options_.plateau * std::ceil(logarithm / options_.plateau - 1e-9);
    std::uint64_t mixed = options_.seed;
    for (const std::size_t p : active_) mixed = (mixed ^ (at[p] + 1)) * 0x9E3779B97F4A7C15ull;
    return std::exp(logarithm + options_.roughness * static_cast<double>(mixed >> 40) / static_cast<double>(1 << 24));
  }

  Options options_;
  Random random_;
  std::optional<SearchSpace> space_;
  std::vector<std::size_t> active_;
  std::vector<bool> nominal_;
  std::vector<double> weight_;
  std::vector<std::vector<double>> coordinates_, centres_;
  std::vector<Resource> resources_;
  std::vector<double> values_;
  double optimum_ = std::numeric_limits<double>::infinity(), worst_ = 0;
  std::uint64_t failed_ = 0;
};

}  // namespace ergotune::cliffs
