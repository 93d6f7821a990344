// Exports results to formats of other tools: Kernel Tuner caches, T4, CSV, C headers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ergotune/space.hpp"
#include "store/formats/recording.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {

/// The results of one session, from any source.
struct ResultSet {
  std::string problem;  ///< name of the problem
  std::string kernel;   ///< name of the kernel function; the problem's name if it is unknown
  std::string device;
  std::string device_name, device_id;  ///< the parts of `device`; the id equals the name if only that is known
  std::filesystem::path store;         ///< empty: not from a store
  std::int64_t session = 0;            ///< id in the store
  std::optional<std::uint64_t> space;  ///< number of configurations in the search space; nullopt: not recorded
  std::string objective = "time";      ///< what was optimised, by name
  ObjectiveSpec goal;                  ///< the same as the user wrote it
  std::string environment;             ///< JSON; empty: unknown
  Provenance provenance = Provenance::measured;
  Constants constants;  ///< of the problem; they include the tuned size
  /// With all values that occur.
  std::vector<Parameter> parameters;
  std::vector<Metric> metrics;
  std::vector<StoredRow> rows;
  std::vector<std::string> warnings;  ///< notes on damaged rows that were left out
};

/// The results of a session of a store, one row per configuration; `session` 0: the latest. Throws UserError if there
/// is no such session.
ResultSet result_set(const Store& store, std::int64_t session = 0);
/// The results of a recording, which contains means and standard errors but no single times.
ResultSet result_set(const Recording& recording);

/// A Kernel Tuner cache (times in ms, clocks in MHz) as version 1.4 writes it: closed, one entry per line, readable by
/// its simulation mode and its dashboard. Failures are recorded as Kernel Tuner's error names. For a configuration that
/// was measured several times, the first usable row is written.
std::string to_kernel_tuner_cache(const ResultSet& results);
/// T4 results, version 1.0.0 of the schema.
std::string to_t4_results(const ResultSet& results);
/// CSV with one line per row: parameters, status, all quantities with standard errors and counts, metrics, costs. SI
/// units.
std::string to_csv(const ResultSet& results);

/// The configuration to use for a device, a problem (with its constants, which give its size) and an objective.
struct BestResult {
  std::string problem, device, objective;
  Constants constants;
  std::vector<Parameter> parameters;
  Configuration configuration;
  Measurement measurement;
};

/// A C header with one block of #defines per device, selected by -DTARGET_<DEVICE>; the first entry is the default.
/// Execution parameters are given in a comment, not as macros.
std::string to_c_header(const std::vector<BestResult>& best);

}  // namespace ergotune
