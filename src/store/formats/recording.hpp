// Recorded results free of their source: a stored session, a Kernel Tuner cache, a T4 file or CSV, all in SI units.
// What replay, scoring, analysis and the model read. Columns, not rows: a recording of 10^5 configurations stays
// within some tens of MB.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "ergotune/result.hpp"
#include "store/certainty.hpp"

namespace ergotune {

/// One recorded quantity over all configurations; NaN where a configuration has none.
struct RecordedColumn {
  std::string name;
  std::vector<double> value;
  std::vector<float> standard_error;  ///< empty when none has one
  std::vector<std::uint32_t> n;       ///< empty when all are 1
  bool is_metric = false;
  /// Of freedom of the standard errors (Quantity::degrees); empty where the source tells n alone: n - 1.
  std::vector<float> degrees;
  /// Of the 95 % interval of a row's value; 0 where it has no standard error.
  double half_width(std::size_t row) const;
};

struct Recording {
  std::string name;  ///< problem or kernel name
  std::string device;
  std::filesystem::path file;
  std::vector<Parameter> parameters;
  std::vector<Restriction> restrictions;  ///< from a T1 file beside it or the stored problem
  bool restrictions_known = false;
  /// What it was tuned for, expression and direction together.
  ObjectiveSpec objective;
  /// Rows whose values are means of a confirmation's rounds, with what they were confirmed for.
  std::map<std::size_t, ObjectiveSpec> confirmed;
  /// Of these rows: what the confirmation says of its winner, and what the search had measured.
  std::map<std::size_t, Certainty> certainty;
  std::map<std::size_t, Measurement> searched;
  std::vector<Metric> metrics;        ///< where the stored problem has them
  std::vector<std::string> warnings;  ///< "cut off after 898 entries; the cut line is lost"

  /// Value positions, size() * parameters.size(), row by row.
  std::vector<std::uint32_t> positions;
  std::vector<Status> statuses;
  /// What compiler, driver or verification said, by row; only where the source has words.
  std::map<std::size_t, std::string> messages;
  std::vector<RecordedColumn> columns;
  /// Costs in s; empty when not recorded. run_seconds: sum of the recorded kernel times of a configuration.
  std::vector<float> compile_seconds, verify_seconds, run_seconds, framework_seconds;

  std::size_t size() const { return statuses.size(); }
  std::span<const std::uint32_t> position(std::size_t row) const {
    return {positions.data() + row * parameters.size(), parameters.size()};
  }
  Configuration configuration(std::size_t row) const;
  const RecordedColumn* column(const std::string& name) const;
  /// The row as a measurement with provenance `replayed`.
  Measurement measurement(std::size_t row) const;
};

/// Reads any of them, told apart by content (gzip or not); a T1 file "<kernel>.T1.json" beside it gives restrictions.
/// Kernel Tuner caches: times in ms become s, lists of readings become values with standard errors (nvml_energys,
/// ps_energy -> energy), clocks in MHz become core_clock in Hz, error strings become statuses, a file cut anywhere
/// loses only the cut line. `session` picks one of a store (0: the latest). Throws UserError.
Recording load_recording(const std::filesystem::path& file, std::int64_t session = 0);

}  // namespace ergotune
