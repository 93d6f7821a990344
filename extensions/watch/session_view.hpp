// One session for the page: its rows as columns, updated when rows are added, and the live file of a running session.
#pragma once

#include <deque>
#include <filesystem>
#include <future>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/live_file.hpp"
#include "report/document.hpp"
#include "search/objective.hpp"
#include "store/sqlite/row_scan.hpp"

namespace ergotune::serve {

class SessionView {
 public:
  /// Throws UserError if the store does not contain the session.
  SessionView(std::filesystem::path store, std::int64_t session);
  ~SessionView();

  /// Reads up to `limit` new rows from the store; returns whether there are more.
  bool update(std::size_t limit);
  /// The last row of the store that was read.
  std::int64_t last() const { return log_.empty() ? 0 : log_.back().first; }
  std::size_t size() const { return source_.recording.size(); }

  /// Columns of the configurations that changed after a row, for up to `limit` rows: {"after", "last", "more", ...}.
  std::string results(std::int64_t after, std::size_t limit, std::int64_t& last) const;
  /// The result document with "live", "runs" and "log"; nullopt while another thread computes it.
  std::optional<std::string> head(const std::optional<std::string>& objective);
  std::optional<std::string> findings(const std::optional<std::string>& objective);
  /// One configuration in detail: all its measurements, its macros, the command that measures it again. Throws
  /// UserError if there is no such row.
  std::string configuration(std::size_t row);
  /// {"live", "run", "rows", "last"}: the values that change continuously.
  std::string state();
  /// Samples of GPUs from number `next` on, which is advanced; empty: none.
  std::string samples(std::uint64_t& next) const;
  /// Lines of the log from number `next` on, as JSON; `next` is advanced. Empty: none.
  std::string log(std::uint64_t& next) const;

  /// Sends a request to the running session ("stop", "pause", "resume", "confirm"); false if none runs.
  bool ask(const std::string& what);
  /// Whether a CPU's energy is being measured, so that no other work should run.
  bool quiet() const;
  /// False if its store was deleted or replaced.
  bool stands() const;
  ReportSource& source() { return source_; }

 private:
  /// A document that is computed in a separate thread.
  struct Work {
    std::future<std::string> future;
    std::string text, objective;
    std::int64_t last = -1;        ///< last row that it includes
    double cost = 0, done_at = 0;  ///< s
  };
  void take(const RowSummary& row);
  std::size_t row_of(const RowSummary& row);
  void set_cells(std::size_t row, const RowSummary& lean);
  void recount(std::size_t row);
  RecordedColumn& column(std::string_view name, bool is_metric);
  void note(double time, const char* level, std::string text);
  void refresh_runs();
  /// Opens the live file of a running session beside the store, if there is one.
  void find_live();
  std::optional<std::string> worked_out(Work& work, const std::optional<std::string>& objective, bool findings);

  std::filesystem::path file_;
  std::pair<std::uint64_t, std::uint64_t> identity_;  ///< of the file
  std::int64_t session_;
  Store store_;
  RowScan scan_;
  ReportSource source_;
  std::optional<Problem> problem_;
  std::unique_ptr<Objective> objective_;
  std::vector<RunInfo> runs_;
  std::unordered_map<std::string, std::size_t> row_of_;  ///< by the text of the configuration
  std::vector<std::map<Value, std::uint32_t>> value_of_;
  std::vector<std::vector<std::int64_t>> counted_;  ///< by configuration: its rows of the store
  std::vector<std::string> stages_, gpus_;
  std::vector<std::pair<std::int64_t, std::size_t>> log_;  ///< row of the store, row of the recording; in order
  std::int64_t scanned_ = 0;                               ///< last row of the store that was read
  std::unordered_map<std::string, std::size_t> column_of_;
  std::vector<std::size_t> again_;  ///< configurations with several rows, whose counting row has to be determined
  double first_at_ = 0;
  std::optional<double> best_;
  Work head_, findings_;
  std::unique_ptr<LiveFile> live_;
  std::filesystem::path live_path_;
  bool on_cpu_ = false;
  double looked_at_ = 0;
  std::deque<std::string> lines_;
  std::uint64_t lines_before_ = 0;
};

}  // namespace ergotune::serve
