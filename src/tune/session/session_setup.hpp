// Prepares a session: opens the target, and the store with known results. The common entry of the command's `tune`,
// plans, the model and the Python package.
#pragma once

#include <memory>
#include <string>

#include "tune/session/session.hpp"
#include "tune/target/target.hpp"

namespace ergotune {

struct PreparedSession : Target {
  std::unique_ptr<Objective> objective;
  std::shared_ptr<LiveSession> watched;  ///< publishes the session to web pages; inactive without a store
  std::unique_ptr<Store> store;          ///< null where nothing is kept
  std::int64_t store_session = 0;
  std::function<void(const std::string&)> announce;  ///< as in SetupOptions
  /// Results of an earlier space of this session, if there is no store.
  std::vector<StoredRow> known;
  /// Prepares the same session with other core clocks than those suggested by the device's model. It opens the device
  /// again, so that this session must be closed first. Null if no model is used, and on several nodes.
  std::function<PreparedSession(const std::vector<double>& clocks)> with_clocks;
  void close();          ///< Gives the device back.
  double preparing = 0;  ///< s for preparing, which count against a budget of seconds
  double waited = 0;     ///< s for other sessions on the device, which do not

  /// Creates the ledger, the only way to measure on the target. Waits until no other session measures on the device,
  /// since two would disturb each other, or until `interrupted` is set.
  std::unique_ptr<Ledger> open_ledger(const std::set<Status>& retry = {},
                                      const std::atomic<bool>* interrupted = nullptr,
                                      std::function<void(Measurement&, const Configuration&)> further_metrics = {});
};

/// Prepares a session. Throws UserError for every mistake that the user can correct, including an empty space.
PreparedSession prepare_session(Problem problem, const SetupOptions& options);

/// Searches a prepared session on a ledger from open_ledger(), as a separate run of the store.
SessionResult run_session(PreparedSession& prepared, Ledger& ledger, const SessionOptions& options);

/// Earlier results of the same problem, as a prior for a search. `names`: recordings or stores (of a store, all
/// sessions of this problem), or "auto": the other sessions of this problem in the session's own store, with any
/// device, size, driver or source. Throws UserError for a file that cannot be read or has no result for this space and
/// objective; "auto" may find nothing.
std::vector<PriorResults> find_priors(const PreparedSession& prepared, const std::vector<std::string>& names);

}  // namespace ergotune
