// One session as the page sees it: its rows as columns, brought up to date as rows come, and the file in which a
// running session shows itself.
#pragma once

#include <deque>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
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
  /// Throws UserError where the store has no such session.
  SessionView(std::filesystem::path store, std::int64_t session);
  ~SessionView();

  /// Takes up to `limit` new rows of the store; true while there are more.
  bool update(std::size_t limit);
  /// The last row of the store that is taken in.
  std::int64_t last() const { return log_.empty() ? 0 : log_.back().first; }
  std::size_t size() const { return source_.recording.size(); }

  /// Columns of the configurations that changed after a row, of up to `limit` rows: {"after", "last", "more", ...}.
  std::string results(std::int64_t after, std::size_t limit, std::int64_t& last) const;
  /// The document, and "live", "runs", "log"; nullopt while another thread works on it.
  std::optional<std::string> head(const std::optional<std::string>& objective);
  std::optional<std::string> findings(const std::optional<std::string>& objective);
  /// One configuration whole: every measurement of it, its macros, the command that measures it again. Throws
  /// UserError.
  std::string configuration(std::size_t row);
  /// {"live", "run", "rows", "last"}: what changes from moment to moment.
  std::string state();
  /// Samples of GPUs from number `next` on; empty where there are none.
  std::string samples(std::uint64_t& next) const;
  /// Lines of the log from number `next` on, as JSON; empty where there are none.
  std::string log(std::uint64_t& next) const;

  /// Asks the session at work for something ("stop", "pause", "resume", "confirm"); false where none is at work.
  bool ask(const std::string& what);
  /// A CPU is being measured for energy: no other work should run.
  bool quiet() const;
  bool live() const { return live_ != nullptr; }
  /// False: its store has been deleted, or another is in its place.
  bool stands() const;
  /// The session that runs, found by its file beside the store.
  void find_live();

  ReportSource& source() { return source_; }
  Objective& objective() { return *objective_; }
  std::int64_t number() const { return session_; }

 private:
  struct Counted;
  /// What is worked out in a thread of its own.
  struct Work {
    std::future<std::string> future;
    std::string text, objective;
    std::int64_t last = -1;        ///< rows it knows of
    double cost = 0, done_at = 0;  ///< s
  };
  void take(const LeanRow& row);
  std::size_t row_of(const LeanRow& row);
  void set_cells(std::size_t row, const LeanRow& lean);
  void recount(std::size_t row);
  RecordedColumn& column(std::string_view name, bool is_metric);
  void note(double time, const char* level, std::string text);
  void refresh_runs();
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
  std::unordered_map<std::string, std::size_t> row_of_;  ///< by the configuration's text
  std::vector<std::map<Value, std::uint32_t>> value_of_;
  std::vector<Counted> counted_;
  std::vector<std::string> stages_, gpus_;
  std::vector<std::pair<std::int64_t, std::size_t>> log_;  ///< row of the store, row of the recording; in order
  std::int64_t scanned_ = 0;                               ///< the last row of the store that was looked at
  std::unordered_map<std::string, std::size_t> column_of_;
  std::vector<std::size_t> again_;  ///< have several rows: which of them counts is looked up
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
