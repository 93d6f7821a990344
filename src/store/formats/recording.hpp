// Recorded results in one form, independent of their source: a stored session, a Kernel Tuner cache, a T4 file or CSV;
// all in SI units. Input of replay, scoring, analysis and the model. Stored by column: a recording of 10^5
// configurations needs some tens of MB.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ergotune/objective.hpp"
#include "ergotune/result.hpp"
#include "store/certainty.hpp"

namespace ergotune {

/// One recorded quantity over all configurations; NaN where a configuration has none.
struct RecordedColumn {
  std::string name;
  std::vector<double> value;
  std::vector<float> standard_error;  ///< empty: none
  std::vector<std::uint32_t> n;       ///< empty: all are 1
  bool is_metric = false;
  /// Degrees of freedom of the standard errors (Quantity::degrees). Empty: n - 1, as the source gives n only.
  std::vector<float> degrees;
  /// Half-width of the 95 % interval of a row's value; 0 if it has no standard error.
  double half_width(std::size_t row) const;
};

struct Recording {
  std::string name;  ///< problem or kernel name
  std::string device;
  std::filesystem::path file;
  std::vector<Parameter> parameters;
  std::vector<Restriction> restrictions;  ///< from a T1 file beside it, or from the stored problem
  bool restrictions_known = false;
  /// The expression and direction that it was tuned for.
  ObjectiveSpec objective;
  /// Rows whose values are means of confirmation repeats, with the objective that they were confirmed for.
  std::map<std::size_t, ObjectiveSpec> confirmed;
  /// For these rows: the certainty of the winner, and the measurement of the search.
  std::map<std::size_t, Certainty> certainty;
  std::map<std::size_t, Measurement> searched;
  std::vector<Metric> metrics;        ///< if the stored problem defines any
  std::vector<std::string> warnings;  ///< for example "cut off after 898 entries; the cut line is lost"

  /// Value positions, size() * parameters.size(), row by row.
  std::vector<std::uint32_t> positions;
  std::vector<Status> statuses;
  /// Messages of compiler, driver or verification, by row, if the source contains them.
  std::map<std::size_t, std::string> messages;
  std::vector<RecordedColumn> columns;
  /// Costs in s; empty: not recorded. run_seconds: sum of the recorded kernel times of a configuration.
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

/// Reads a file in any of these formats, recognised by its content, with or without gzip. A T1 file "<kernel>.T1.json"
/// beside it provides restrictions. In Kernel Tuner caches times in ms become s, lists of readings become values with
/// standard errors (nvml_energys, ps_energy -> energy), clocks in MHz become core_clock in Hz, and error strings become
/// statuses; a file that was cut off loses only its last line. `session`: the session of a store (0: the latest).
/// Throws UserError if the file cannot be read.
Recording load_recording(const std::filesystem::path& file, std::int64_t session = 0);

}  // namespace ergotune
