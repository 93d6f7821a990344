#include "ergotune/result.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/statistics.hpp"

namespace ergotune {
namespace {

/// By the values of Status.
constexpr std::array<std::string_view, 8> kStatusNames = {"ok",      "compile_error", "launch_error",  "runtime_error",
                                                          "timeout", "wrong_result",  "not_converged", "unsupported"};

}  // namespace

std::string to_string(Status status) { return std::string(kStatusNames.at(static_cast<std::size_t>(status))); }

std::optional<Status> status_from(std::string_view name) {
  const auto found = std::ranges::find(kStatusNames, name);
  return found == kStatusNames.end() ? std::nullopt : std::optional(static_cast<Status>(found - kStatusNames.begin()));
}

bool usable(Status status) { return status == Status::ok || status == Status::not_converged; }

std::string to_string(Provenance provenance) {
  constexpr std::array kNames = {"measured", "replayed", "simulated", "modelled"};
  return kNames.at(static_cast<std::size_t>(provenance));
}

std::optional<double> Measurement::value(const std::string& name) const {
  double found;
  if (const auto quantity = quantities.find(name); quantity != quantities.end()) {
    found = quantity->second.value;
  } else if (const auto metric = metrics.find(name); metric != metrics.end()) {
    found = metric->second;
  } else {
    return std::nullopt;
  }
  if (!std::isfinite(found)) return std::nullopt;
  return found;
}

double Measurement::standard_error(const std::string& name) const {
  if (const auto quantity = quantities.find(name); quantity != quantities.end()) {
    return quantity->second.standard_error;
  }
  const auto metric = metric_errors.find(name);
  return metric != metric_errors.end() ? metric->second : 0.0;
}

double Quantity::half_width() const { return half_width_95(standard_error, degrees); }

double Measurement::degrees(const std::string& name) const {
  if (const auto quantity = quantities.find(name); quantity != quantities.end()) return quantity->second.degrees;
  const auto metric = metric_degrees.find(name);
  return metric != metric_degrees.end() ? metric->second : 0.0;
}

double Measurement::half_width(const std::string& name) const {
  return half_width_95(standard_error(name), degrees(name));
}

}  // namespace ergotune
