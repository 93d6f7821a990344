// Reads new rows of a session efficiently, for following a session while it runs.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "store/sqlite/database.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {

/// The columns that stored_row() reads.
inline constexpr const char* kStoredRowColumns =
    "id, configuration, status, message, quantities, metrics, metric_errors, warnings, times, compile_seconds, "
    "verify_seconds, measure_seconds, tuner_seconds, finished_at, kind, run, stage, board";
/// Throws Error if the row is damaged.
StoredRow stored_row(const Statement& row);

/// A row without the fields that only a detailed view needs.
struct RowSummary {
  struct Cell {
    std::string_view name;  ///< valid during the call
    double value = 0;
    float standard_error = 0;
    std::uint32_t n = 1;
    bool is_metric = false;
    float degrees = 0;                ///< degrees of freedom (Quantity::degrees)
    std::string_view method, sensor;  ///< of a quantity
    Provenance provenance = Provenance::measured;
  };
  std::int64_t id = 0, run = 0;
  double finished_at = 0;  ///< s since the epoch
  double compile_seconds = 0, verify_seconds = 0, measure_seconds = 0, tuner_seconds = 0;
  /// JSON list, as stored: equal texts are equal configurations.
  std::string configuration;
  Status status = Status::ok;
  RowKind kind = RowKind::search;
  std::string message, stage, gpu;
  std::vector<Cell> cells;
  bool damaged = false;  ///< its status or quantities cannot be read
};

class RowScan {
 public:
  /// Opens the store for reading; throws UserError if the file is not a store.
  RowScan(const std::filesystem::path& store, std::int64_t session);
  ~RowScan();
  RowScan(const RowScan&) = delete;
  RowScan& operator=(const RowScan&) = delete;

  /// Passes up to `limit` rows after row `after` to `each`, in order; returns their number.
  std::size_t after(std::int64_t after, std::size_t limit, const std::function<void(const RowSummary&)>& each);
  /// Returns these rows with all fields, in order; damaged rows are left out.
  std::vector<StoredRow> whole(const std::vector<std::int64_t>& ids);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergotune
