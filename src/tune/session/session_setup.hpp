// A session on a target: the target opened, and the store with what it knows of it. The command's `tune`, plans, the
// model and the Python package all start here.
#pragma once

#include <memory>
#include <string>

#include "tune/session/session.hpp"
#include "tune/target/target.hpp"

namespace ergotune {

struct PreparedSession : Target {
  std::unique_ptr<Objective> objective;
  std::shared_ptr<LiveSession> watched;  ///< where the page sees it; shows nothing where no store is kept
  std::unique_ptr<Store> store;          ///< null where nothing is kept
  std::int64_t store_session = 0;
  std::function<void(const std::string&)> announce;  ///< as in SetupOptions
  /// What an earlier space of this session measured, where no store keeps it.
  std::vector<StoredRow> known;
  /// The same session with other values in the place of the core clocks that the device's model suggests. The device
  /// is opened anew: this one must be closed before. Null where no model is used, and on several nodes.
  std::function<PreparedSession(const std::vector<double>& clocks)> with_clocks;
  void close();       ///< Gives the device back.
  double waited = 0;  ///< s for preparing and for other sessions on the device, which count against a budget of seconds

  /// What is known of the target; the one way to measure on it. Two sessions on one device disturb each other's times:
  /// this one waits until no other measures there, or until it is interrupted; after `patience` s it throws Error (0:
  /// never).
  std::unique_ptr<Ledger> open_ledger(const std::set<Status>& retry = {},
                                      const std::atomic<bool>* interrupted = nullptr,
                                      std::function<void(Measurement&, const Configuration&)> further_metrics = {},
                                      double patience = 0);
};

/// Throws UserError for everything that the user can mend, an empty space among it.
PreparedSession prepare_session(Problem problem, const SetupOptions& options);

/// Searches what was prepared, on a ledger of open_ledger(), as a run of its own.
SessionResult run_session(PreparedSession& prepared, Ledger& ledger, const SessionOptions& options);

}  // namespace ergotune
