#include "search/models/encoding.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace ergotune::search {
namespace {

bool all_numbers(const Parameter& parameter) {
  return std::all_of(parameter.values.begin(), parameter.values.end(), [](const Value& v) { return v.is_number(); });
}

bool all_positive(const Parameter& parameter) {
  return std::all_of(parameter.values.begin(), parameter.values.end(), [](const Value& v) { return v.as_real() > 0; });
}

void scale_to_unit(std::vector<float>& x) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  const float from = *low, width = *high - *low;
  for (float& v : x) v = width > 0 ? (v - from) / width : 0.0f;
}

// Sizes on a log scale; numbers with a zero keep their own, shifted by one where they are whole and wide
// apart.
std::vector<float> sizes(const Parameter& parameter) {
  std::vector<float> x;
  const bool positive = all_positive(parameter);
  double lowest = parameter.values.front().as_real();
  for (const Value& v : parameter.values) lowest = std::min(lowest, v.as_real());
  for (const Value& v : parameter.values)
    x.push_back(static_cast<float>(positive ? std::log2(v.as_real()) : std::log2(1 + v.as_real() - lowest)));
  scale_to_unit(x);
  return x;
}

int twos(std::int64_t value) {
  int count = 0;
  for (value = std::abs(value); value != 0 && value % 2 == 0; value /= 2) ++count;
  return count;
}

bool all_integers(const Parameter& parameter) {
  return std::all_of(parameter.values.begin(), parameter.values.end(), [](const Value& v) { return v.is_integer(); });
}

// "block_size_x" -> "block_size_?": what the parameters of one shape have in common.
std::string shape_name(const std::string& name) {
  for (const char axis : {'x', 'y', 'z', 'X', 'Y', 'Z'}) {
    if (name.size() > 1 && name.back() == axis) return name.substr(0, name.size() - 1) + "?";
  }
  return {};
}

}  // namespace

std::vector<Feature> make_features(const SearchSpace& space) {
  std::vector<Feature> features;
  std::map<std::string, std::vector<std::size_t>> shapes;
  for (std::size_t p = 0; p < space.dimensions(); ++p) {
    const Parameter& parameter = space.parameters()[p];
    if (parameter.values.size() < 2) continue;
    if (!all_numbers(parameter)) {
      std::vector<float> own;
      for (std::size_t v = 0; v < parameter.values.size(); ++v) own.push_back(static_cast<float>(v));
      features.push_back({Feature::Kind::nominal, {p}, {std::move(own)}});
      continue;
    }
    features.push_back({Feature::Kind::ordinal, {p}, {sizes(parameter)}});
    if (!all_integers(parameter) || !all_positive(parameter)) continue;
    std::vector<float> powers;
    bool is_power = true;
    for (const Value& v : parameter.values) {
      powers.push_back(static_cast<float>(std::min(twos(v.as_integer()), 6)));
      is_power = is_power && (v.as_integer() & (v.as_integer() - 1)) == 0;
    }
    // powers of two say nothing new, nor do a handful of values
    if (!is_power && parameter.values.size() > 4) {
      scale_to_unit(powers);
      features.push_back({Feature::Kind::divisibility, {p}, {std::move(powers)}});
    }
    if (const std::string shape = shape_name(parameter.name); !shape.empty()) shapes[shape].push_back(p);
  }
  for (const auto& [name, parameters] : shapes) {
    if (parameters.size() < 2) continue;
    Feature product{Feature::Kind::product, parameters, {}};
    double span = 0;
    for (const std::size_t p : parameters) {
      std::vector<float> logs;
      for (const Value& v : space.parameters()[p].values) logs.push_back(static_cast<float>(std::log2(v.as_real())));
      const auto [low, high] = std::minmax_element(logs.begin(), logs.end());
      span += *high - *low;
      product.coordinates.push_back(std::move(logs));
    }
    for (auto& logs : product.coordinates)
      for (float& x : logs) x /= static_cast<float>(span);
    features.push_back(std::move(product));
  }
  return features;
}

}  // namespace ergotune::search
