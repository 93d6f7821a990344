// Recorded results in one form, independent of their source: a stored session, a Kernel Tuner cache, a T4 file or CSV;
// all in SI units. Input of replay, scoring, analysis and the model. Stored by column: a recording of 10^5
// configurations needs some tens of MB.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ergotune/objective.hpp"
#include "ergotune/result.hpp"
#include "store/certainty.hpp"

namespace ergotune {

/// How values were obtained (Quantity).
struct Origin {
  std::string method = "recorded", sensor;
  Provenance provenance = Provenance::replayed;
  friend bool operator==(const Origin&, const Origin&) = default;
};

/// One recorded quantity over all configurations; NaN where a configuration has none.
struct RecordedColumn {
  std::string name;
  std::vector<double> value;
  std::vector<float> standard_error;  ///< empty: none
  std::vector<std::uint32_t> n;       ///< empty: all are 1
  bool is_metric = false;
  /// Degrees of freedom of the standard errors (Quantity::degrees). Empty: n - 1, as the source gives n only.
  std::vector<float> degrees;
  /// Origins of the values, and for each row its position among them. Empty: all values have the recording's
  /// provenance, and how they were obtained is unknown.
  std::vector<Origin> origins;
  std::vector<std::uint32_t> origin;
  /// Half-width of the 95 % interval of a row's value; 0 if it has no standard error.
  double half_width(std::size_t row) const;
};

/// That a row's values are means of confirmation repeats.
struct ConfirmedRow {
  std::optional<ObjectiveSpec> objective;  ///< that it was confirmed for; nullopt: unknown
  int repeats = 0;                         ///< 0: unknown
  std::optional<Certainty> certainty;      ///< of the winner
  std::optional<Measurement> searched;     ///< the measurement of the search
};

struct Recording {
  std::string name;  ///< problem or kernel name
  std::string device;
  std::filesystem::path file;
  /// Of the values: as the store states it. Values in other files are `replayed`, unless the file states that they were
  /// simulated or modelled.
  Provenance provenance = Provenance::replayed;
  std::vector<Parameter> parameters;
  std::vector<Restriction> restrictions;  ///< from a T1 file beside it, or from the stored problem
  bool restrictions_known = false;
  /// The expression and direction that it was tuned for.
  ObjectiveSpec objective;
  std::map<std::size_t, ConfirmedRow> confirmations;  ///< by row
  std::vector<Metric> metrics;                        ///< if the stored problem defines any
  Constants constants;                                ///< of the stored problem
  std::vector<std::string> warnings;                  ///< for example "cut off after 898 entries; the cut line is lost"
  std::uint64_t space = 0;                            ///< that a session searched; 0: these; largest: unknown

  /// Value positions, size() * parameters.size(), row by row.
  std::vector<std::uint32_t> positions;
  std::vector<Status> statuses;
  /// Messages of compiler, driver or verification, by row, if the source contains them.
  std::map<std::size_t, std::string> messages;
  std::map<std::size_t, std::vector<std::string>> row_warnings;  ///< Measurement::warnings, by row
  std::vector<RecordedColumn> columns;
  /// Costs in s; empty: not recorded. run_seconds: sum of the recorded kernel times of a configuration.
  std::vector<float> compile_seconds, verify_seconds, run_seconds, framework_seconds;
  /// Measurement::finished_at; empty: not recorded.
  std::vector<double> finished_at;

  std::size_t size() const { return statuses.size(); }
  /// "60 of 810 configurations were measured, those that a search chose"; empty where nearly all were.
  std::string selection() const;
  std::span<const std::uint32_t> position(std::size_t row) const {
    return {positions.data() + row * parameters.size(), parameters.size()};
  }
  Configuration configuration(std::size_t row) const;
  const RecordedColumn* column(const std::string& name) const;
  /// Whether a row was confirmed for this objective.
  bool is_confirmed(std::size_t row, const ObjectiveSpec& objective) const;
  Measurement measurement(std::size_t row) const;
};

/// Reads a file in any of these formats, recognised by its content, with or without gzip. A T1 file "<kernel>.T1.json"
/// beside it provides restrictions. In Kernel Tuner caches times in ms become s, lists of readings become values with
/// standard errors (nvml_energys, ps_energy -> energy), clocks in MHz become core_clock in Hz, and error strings become
/// statuses; a file that was cut off loses only its last line. `session`: the session of a store (0: the latest).
/// Throws UserError if the file cannot be read.
Recording load_recording(const std::filesystem::path& file, std::int64_t session = 0);

}  // namespace ergotune
