// Results in the formats of others: Kernel Tuner caches, T4, CSV, C headers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ergotune/space.hpp"
#include "store/formats/recording.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {

/// The results of one session, whatever they came from.
struct ResultSet {
  std::string problem;  ///< name of the problem
  std::string kernel;   ///< name of the kernel function; the problem's where it is not known
  std::string device;
  std::string device_name, device_id;  ///< the parts of `device`; the id is the name where only that is known
  std::filesystem::path store;         ///< empty: it comes from no store
  std::int64_t session = 0;            ///< of the store
  std::optional<std::uint64_t> space;  ///< configurations of the search space; nullopt where not recorded
  std::string objective = "time";      ///< what was optimised, by name
  ObjectiveSpec goal;                  ///< the same as the user wrote it
  std::string environment;             ///< JSON; empty when not known
  Provenance provenance = Provenance::measured;
  Constants constants;  ///< the problem's, which say what size was tuned
  /// With every value that occurs.
  std::vector<Parameter> parameters;
  std::vector<Metric> metrics;
  std::vector<StoredRow> rows;
  std::vector<std::string> warnings;  ///< what was damaged and left out
};

/// A session of a store, one row per configuration; `session` 0 means the latest. Throws UserError when there
/// is none.
ResultSet result_set(const Store& store, std::int64_t session = 0);
/// A recording; single times are not in it, only their mean and standard error.
ResultSet result_set(const Recording& recording);

/// A Kernel Tuner cache (times in ms, clocks in MHz), as its 1.4 writes them: closed, one entry per line,
/// read by its simulation mode and by its dashboard. Failures carry Kernel Tuner's words. Of a configuration
/// measured several times the first usable row is written.
std::string to_kernel_tuner_cache(const ResultSet& results);
/// T4 results, version 1.0.0 of the schema.
std::string to_t4_results(const ResultSet& results);
/// One line per row: parameters, status, every quantity with its standard error and count, metrics, costs. SI
/// units.
std::string to_csv(const ResultSet& results);

/// The configuration to use on a device, for a problem (its constants are its size) and an objective.
struct BestResult {
  std::string problem, device, objective;
  Constants constants;
  std::vector<Parameter> parameters;
  Configuration configuration;
  Measurement measurement;
};

/// A C header with one block of #defines per device, chosen by -DTARGET_<DEVICE>; the first entry is the
/// default. Execution parameters are no macros: they stand in a comment.
std::string to_c_header(const std::vector<BestResult>& best);

}  // namespace ergotune
