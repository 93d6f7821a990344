// Small spaces and recordings for the tests of searching.
#pragma once

#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ergotune/strategy.hpp"
#include "store/formats/recording.hpp"

namespace ergotune::search_tests {

inline Parameter parameter(const std::string& name, std::vector<Value> values) {
  Parameter p;
  p.name = name;
  p.values = std::move(values);
  return p;
}

inline Restriction restriction(const std::string& text) {
  Restriction r;
  r.expression = Expression::parse(text);
  return r;
}

/// 16 x 6 x 4 x 2 values, restricted; a text among the parameters.
inline SearchSpace restricted_space() {
  std::vector<Value> widths, unrolls;
  for (int i = 1; i <= 16; ++i) widths.push_back(16 * i);
  for (int i = 1; i <= 6; ++i) unrolls.push_back(i);
  return SearchSpace::build(
      {parameter("block_size_x", widths), parameter("unroll", unrolls), parameter("block_size_y", {1, 2, 4, 8}),
       parameter("layout", {"rows", "columns"})},
      {restriction("block_size_x * block_size_y <= 512"), restriction("unroll < 4 or layout == 'rows'")});
}

inline SearchSpace line_space(int size) {
  std::vector<Value> values;
  for (int i = 0; i < size; ++i) values.push_back(i);
  return SearchSpace::build({parameter("x", values)}, {});
}

/// A rugged but learnable value of a configuration of restricted_space().
inline double landscape(const SearchSpace& space, ConfigurationIndex index) {
  const Configuration c = space.configuration(index);
  const double x = std::log2(c[0].as_real()), u = c[1].as_real(), y = std::log2(c[2].as_real());
  const double shape = std::abs(x + y - 7.3) + 0.3 * std::abs(u - 3) + (c[3].as_string() == "rows" ? 0.0 : 0.4);
  return 1e-3 * std::exp(0.5 * shape + (c[0].as_integer() % 32 != 0 ? 0.2 : 0.0));
}

inline Outcome success(double value) {
  Outcome outcome;
  outcome.ok = true;
  outcome.values = {value};
  return outcome;
}

/// A recording of one parameter with a value (infinity: failed) and a cost per row.
inline Recording line_recording(const std::vector<double>& values, const std::vector<double>& seconds) {
  Recording recording;
  recording.name = "line";
  recording.objective.text = "time";
  Parameter x;
  x.name = "x";
  RecordedColumn time;
  time.name = "time";
  for (std::size_t i = 0; i < values.size(); ++i) {
    x.values.emplace_back(static_cast<std::int64_t>(i));
    recording.positions.push_back(static_cast<std::uint32_t>(i));
    const bool ok = std::isfinite(values[i]);
    recording.statuses.push_back(ok ? Status::ok : Status::runtime_error);
    time.value.push_back(ok ? values[i] : std::numeric_limits<double>::quiet_NaN());
    recording.compile_seconds.push_back(static_cast<float>(seconds[i]));
    recording.run_seconds.push_back(0);
  }
  recording.parameters = {x};
  recording.columns = {time};
  return recording;
}

}  // namespace ergotune::search_tests
