// Options that `tune` and `measure` share: where and how to measure. Every one has a place in the problem
// file; the command line wins.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/verb.hpp"
#include "ergotune/tune/session_setup.hpp"

namespace ergotune::cli {

struct LiveArguments {
  std::string file;
  std::optional<std::string> device, objective, cache_folder;
  std::optional<int> jobs, warm_up, min_repeats, max_repeats;
  std::optional<double> precision, time_limit, compile_time_limit, energy_budget, max_seconds;
  std::vector<std::string> sensors, controls;
  bool cold_cache = false, no_cache = false, no_verify = false, in_process = false, take_over = false;
};

/// Adds them to a verb, FILE included.
void add_live_options(Verb verb, LiveArguments& arguments);
/// The problem with the objective of the command line, and the set-up with everything else.
Problem load_with(const LiveArguments& arguments);
SetupOptions setup_with(const LiveArguments& arguments, const Problem& problem);

/// A measurement as the contract's JSON: status, quantities with value, standard_error, n, method, sensor;
/// metrics.
nlohmann::ordered_json to_json(const Measurement& measurement);
nlohmann::ordered_json to_json(const Value& value);
/// {"name": value, ...}
nlohmann::ordered_json to_json(const std::vector<Parameter>& parameters, const Configuration& configuration);
/// A finite number, else null.
nlohmann::ordered_json number_or_null(double value);

}  // namespace ergotune::cli
