// Builds a recording row by row, adding columns as they occur. Blocks of a file are built separately and joined.
// Also the readers of load_recording(), one per format.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/formats/recording.hpp"

namespace ergotune {

/// Finds the position of a value in a parameter's list of values.
class ValueIndex {
 public:
  ValueIndex() = default;
  explicit ValueIndex(const std::vector<Value>& values);
  /// Returned by find() for a value that is not in the list.
  static constexpr std::uint32_t npos = ~std::uint32_t{0};
  std::uint32_t find(std::int64_t value);
  std::uint32_t find(const Value& value);

 private:
  std::vector<std::int64_t> integers_;  // a short list of integers, searched from the last hit on
  std::unordered_map<std::int64_t, std::uint32_t> by_integer_;
  std::vector<Value> values_;
  std::uint32_t last_ = 0;
  bool all_integers_ = false;
};

/// Costs of one configuration, s.
struct RowCosts {
  double compile = 0, verify = 0, run = 0, framework = 0;
  bool any = false;
};

class RecordingBuilder {
 public:
  explicit RecordingBuilder(std::size_t dimensions) : dimensions_(dimensions) {}

  /// Number of a column, which is created at its first use.
  std::size_t column(std::string_view name, bool is_metric);
  /// Sets the current row's value in a column. Later calls replace earlier ones, except that n = 0 keeps an n and
  /// standard error that are set already (for a mean given beside its list of readings).
  void set(std::size_t column, double value, double standard_error = 0, std::uint32_t n = 0);
  /// Sets the degrees of freedom of the value set by set(); rows without any have n - 1.
  void set_degrees(std::size_t column, double degrees);
  /// Sets how the value was obtained; if no row has an origin, it is unknown.
  void set_origin(std::size_t column, const Origin& origin);
  /// All quantities and metrics of a measurement.
  void set(const Measurement& measurement);
  void set_statistics(std::size_t column, double mean, double standard_error, std::uint32_t n);
  /// Replaces standard error and n of the current row's value.
  void set_error(std::size_t column, double standard_error, std::uint32_t n);
  /// Sets the current row's message.
  void set_message(std::string_view message) { message_ = message; }
  void finish_row(const std::uint32_t* positions, Status status, const RowCosts& costs, double finished_at = 0);
  /// Discards the values set since the last finished row.
  void drop_row();

  std::size_t rows() const { return statuses_.size(); }
  /// Appends the rows of another builder, matching columns by name, and empties it.
  void append(RecordingBuilder& other);
  /// Replaces positions beyond the parameters' values by those of `extra` (by parameter, in the order found).
  void map_positions(const std::vector<std::vector<std::uint32_t>>& extra, const std::vector<Parameter>& parameters);
  /// Moves everything to `recording`; columns without values are dropped.
  void finish(Recording& recording);

 private:
  struct Column {
    std::string name;
    bool is_metric = false;
    std::vector<double> value;
    std::vector<float> standard_error;
    std::vector<std::uint32_t> n;
    std::vector<float> degrees;  ///< only if has_degrees
    std::vector<Origin> origins;
    std::vector<std::uint32_t> origin;
    // the row being built
    double current = 0, current_error = 0;
    std::optional<double> current_degrees;
    std::uint32_t current_n = 0, current_origin = 0;
    bool has_value = false, has_mean = false, has_degrees = false;
    /// Gives finished rows without degrees of freedom n - 1.
    void fill_degrees();
  };
  std::size_t dimensions_;
  std::vector<Column> columns_;
  std::vector<std::uint32_t> positions_;
  std::vector<Status> statuses_;
  std::vector<float> compile_, verify_, run_, framework_;
  bool any_costs_ = false;
  std::vector<double> finished_at_;
  std::string message_;  // of the row being built
  std::map<std::size_t, std::string> messages_;
};

/// The provenance of values that are read from a file, which states theirs as `text` (or not at all: empty): what was
/// measured for that file is replayed here, what was simulated or modelled remains it.
Provenance provenance_in_file(std::string_view text);

/// Collects rows of parameters whose values are not known in advance. Values are numbered in the order found and sorted
/// at the end, so that the recording does not depend on the order of the rows.
class DistinctValues {
 public:
  explicit DistinctValues(std::size_t dimensions) : lists_(dimensions), positions_(dimensions) {}
  /// The positions of a configuration's values; valid until the next call.
  const std::uint32_t* positions(const Configuration& configuration);
  /// Sets the parameters' values and converts the recording's positions to those of the sorted values. Values that a
  /// parameter already has keep their order and come first.
  void finish(Recording& recording) const;

 private:
  std::vector<std::vector<Value>> lists_;
  std::vector<std::map<Value, std::uint32_t>> by_value_;
  std::vector<std::uint32_t> positions_;
};

/// A Kernel Tuner cache, {..., "tune_params": {..}, "cache": {"16,1": {..}, ...}}, which may be cut off. If every entry
/// is on its own line (as Kernel Tuner writes them), it is read in blocks by several threads and never held as a whole.
/// Restrictions are not read.
Recording read_cache(const std::filesystem::path& file);
/// T4, the JSON format for results of the auto-tuning community.
Recording read_t4(const std::filesystem::path& file);
/// Comma-separated values in SI units. Columns before "status" are parameters; without "status", those before the first
/// known quantity ("time", "energy" ...). "X_standard_error", "X_n" and "X_degrees" (default: X_n - 1) belong to X.
Recording read_csv(const std::filesystem::path& file);
/// A session of a store; `session` 0: the latest. For a configuration that was measured several times, the first usable
/// row counts.
Recording read_stored_session(const std::filesystem::path& file, std::int64_t session);

}  // namespace ergotune
