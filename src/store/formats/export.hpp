// Exports results to formats of other tools: Kernel Tuner caches, T4, CSV, C headers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "store/result_set.hpp"

namespace ergotune {

/// A Kernel Tuner cache (times in ms, clocks in MHz) as version 1.4 writes it: closed, one entry per line, readable by
/// its simulation mode and its dashboard. Failures are recorded as Kernel Tuner's error names. For a configuration that
/// was measured several times, the first usable row is written.
std::string to_kernel_tuner_cache(const ResultSet& results);
/// T4 results, version 1.0.0 of the schema.
std::string to_t4_results(const ResultSet& results);
/// CSV with one line per row: parameters, status, all quantities with standard errors and counts, metrics, costs. SI
/// units.
std::string to_csv(const ResultSet& results);

/// The configuration to use for a device, a problem (with its constants, which give its size) and an objective.
struct BestResult {
  std::string problem, device, objective;
  Constants constants;
  std::vector<Parameter> parameters;
  Configuration configuration;
  Measurement measurement;
  int confirmation_repeats = 0;            ///< 0: not confirmed
  std::optional<double> probability_best;  ///< that it is the best of the confirmed candidates
  std::size_t front = 0;                   ///< points of the Pareto front that it is one of; 0: there is one objective
  std::optional<double> gain;              ///< factor over the default configuration; nullopt: not certain
  double gain_half_width = 0;              ///< of its 95 % interval; 0: unknown
  std::string default_configuration;       ///< "a=1, b=2"; empty: not measured
  std::vector<Metric> metrics = {};        ///< of the problem, for their units
};

/// A parameter's name as an identifier of C: a kernel's own parameter sq.BLOCK becomes sq_BLOCK.
std::string c_identifier(std::string parameter);
/// A C header with one block of #defines per device, selected by -DTARGET_<DEVICE>; the first entry is the default.
/// Execution parameters and compiler options (text that begins with "-") are given in a comment, not as macros.
std::string to_c_header(const std::vector<BestResult>& best);

}  // namespace ergotune
