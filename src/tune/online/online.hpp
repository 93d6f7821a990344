// Tuning a workload that is running anyway: the application's loop asks for its rounds one by one, and now and then one
// of them is preceded by a trial of another configuration.
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
  /// What trials may cost in all: a share of the time that the rounds so far would have taken with the default
  /// configuration. What faster configurations save may be spent as well.
  double bound = 0.05;
  /// Trials are the application's own rounds, a few with each configuration, in this process: they cost a compilation
  /// and what a slower configuration takes longer. Outputs are not compared: for configurations that are known to be
  /// right.
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
/// asks for another way. Where the problem
/// names a store, what was tried is there the next time.
class Session {
 public:
  /// Opens the target and makes the default configuration ready, which the rounds begin with; throws UserError where it
  /// does not work, and for replayed and simulated devices.
  Session(Problem problem, SetupOptions setup, OnlineOptions options = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Runs one round and waits for it. A trial comes before it where its expected cost fits into what the bound leaves.
  /// Throws DeviceError when the round itself fails.
  OnlineIteration next_round();

  /// An argument's contents as the last round left them, and for the next one. Throws UserError for an unknown name or
  /// another size.
  void read(const std::string& buffer, std::span<std::byte> into) const;
  void write(const std::string& buffer, std::span<const std::byte> contents);
  /// Bytes of an argument.
  std::size_t bytes(const std::string& buffer) const;
  /// Puts all buffers back to what the problem fills them with.
  void restore();

  /// The best so far, and what is known of it.
  Configuration best() const;
  const Measurement& measurement() const;
  const SearchSpace& space() const;
  bool settled() const;
  std::uint64_t rounds() const;
  std::uint64_t tried() const;    ///< in this process
  std::uint64_t resumed() const;  ///< known from the store
  /// Time of all rounds and trials so far over what the rounds would have taken with the default configuration, by what
  /// was measured of both; 0 before the first. `worst_ratio`: the highest that it has been.
  double ratio() const;
  double worst_ratio() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ergotune
