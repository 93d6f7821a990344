#include "ergotune/result.hpp"

#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/statistics.hpp"

namespace ergotune {
namespace {

constexpr std::array<std::pair<Status, std::string_view>, 8> kStatusNames{{
    {Status::ok, "ok"},
    {Status::compile_error, "compile_error"},
    {Status::launch_error, "launch_error"},
    {Status::runtime_error, "runtime_error"},
    {Status::timeout, "timeout"},
    {Status::wrong_result, "wrong_result"},
    {Status::not_converged, "not_converged"},
    {Status::unsupported, "unsupported"},
}};

}  // namespace

std::string to_string(Status status) {
  for (const auto& [value, name] : kStatusNames) {
    if (value == status) return std::string(name);
  }
  return "runtime_error";
}

std::optional<Status> status_from(std::string_view name) {
  for (const auto& [value, text] : kStatusNames) {
    if (text == name) return value;
  }
  return std::nullopt;
}

bool usable(Status status) { return status == Status::ok || status == Status::not_converged; }

std::string to_string(Provenance provenance) {
  switch (provenance) {
    case Provenance::measured:
      return "measured";
    case Provenance::replayed:
      return "replayed";
    case Provenance::simulated:
      return "simulated";
    case Provenance::modelled:
      return "modelled";
  }
  return "measured";
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
