// Online tuning of a workload that runs in an application: the application's loop requests iterations one by one, and
// some of them are preceded by a trial of another configuration.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "tune/session/session_setup.hpp"

namespace ergotune {

struct OnlineOptions {
  /// Bound on the cost of all trials, as a share of the time (with own_rounds and an objective of energy: the energy)
  /// that the iterations so far would have taken with the default configuration. What better configurations save may be
  /// spent in addition.
  double bound = 0.05;
  /// Trials are the application's own rounds, a few with each configuration (for energy, those of some seconds), in
  /// this process, for which code is compiled beside the rounds: they cost what a worse configuration takes more.
  /// Clocks and limits of the problem are set with each configuration, and restored when the session ends. Outputs are
  /// not compared: for configurations that are known to be right.
  bool own_rounds = false;
  /// How configurations are chosen, and how many are tried at most (budget).
  SessionOptions session;
};

struct OnlineIteration {
  std::uint64_t number = 0;                 ///< from 1
  double seconds = 0;                       ///< all that next_round() took, trial included
  double device_seconds = 0;                ///< of the round itself
  ConfigurationIndex configuration = 0;     ///< what the round ran with
  std::optional<ConfigurationIndex> tried;  ///< what was tried before it; with own_rounds, whose trial ended with it
  bool settled = false;                     ///< nothing is left to try
};

/// The rounds run in this process on buffers that the application reads and writes; each runs with a configuration
/// whose outputs are known to be right: the default at first, later the best so far. Trials run in worker processes on
/// buffers of their own, so that one that crashes, hangs or computes something else harms no round, unless own_rounds
/// asks for another way. Where the problem names a store, what was tried is there the next time.
class Session {
 public:
  /// Opens the target and loads the default configuration, which the iterations begin with. Throws UserError if the
  /// default configuration fails, and for replayed and simulated devices.
  Session(Problem problem, SetupOptions setup, OnlineOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Runs one iteration and waits for it. A trial precedes it if its expected cost fits into the remaining bound.
  /// Throws DeviceError if the iteration itself fails.
  OnlineIteration next_round();

  /// Copies the contents of an argument out of or into the iterations' buffers. Throws UserError for an unknown name or
  /// a wrong size.
  void read(const std::string& buffer, std::span<std::byte> into) const;
  void write(const std::string& buffer, std::span<const std::byte> contents);
  /// Size of an argument in bytes.
  std::size_t bytes(const std::string& buffer) const;
  /// Resets all buffers to the initial contents that the problem defines.
  void restore();

  /// The best configuration so far, and its result.
  Configuration best() const;
  const Measurement& measurement() const;
  const SearchSpace& space() const;
  bool settled() const;
  std::uint64_t rounds() const;
  std::uint64_t tried() const;    ///< configurations tried in this process
  std::uint64_t resumed() const;  ///< configurations known from the store
  /// Cost of all iterations and trials so far (time; with own rounds for energy, energy), relative to the estimated
  /// cost of the iterations alone with the default configuration; 0 before it is known. `worst_ratio`: the highest
  /// value so far.
  double ratio() const;
  double worst_ratio() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergotune
