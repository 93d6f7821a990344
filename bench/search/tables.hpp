// The tables that search_speed.cpp prints.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ergotune {

// Strategies on the spaces of cliffs.hpp, or on problems on a simulated device, as a table.
namespace cliffs {

struct TableOptions {
  std::uint64_t first = 1;               ///< seed of the first space
  std::size_t spaces = 10, repeats = 5;  ///< at most 30 where problems are simulated
  std::vector<std::string> files;        ///< problems to simulate in place of drawn spaces
  std::string device = "a100";
  std::vector<std::string> strategies = {"auto", "random", "genetic"};  ///< the first is judged against random
  std::size_t evaluations = 400;                                        ///< at most 400
  int threads = 0;                                                      ///< 0: one per core
  std::size_t slots = 1;                                                ///< evaluations at a time
  double seconds = 0;  ///< that an evaluation takes; 0: the strategy is not told
};

/// Prints each space, each strategy's mean loss after 25 to 400 evaluations, and its own time an evaluation.
void print_table(const TableOptions& options);

}  // namespace cliffs

// The final choice where measurements are noisy.
struct NoiseTableOptions {
  std::vector<std::string> files;
  double noise = 0.05;  ///< standard deviation of a measurement, share of its value
  std::size_t repeats = 10, evaluations = 400;
  std::uint64_t first = 1;  ///< seed
  int threads = 0;
};

/// Whole sessions on replayed recordings with normal noise put on them, at the budget that scoring gives each space
/// (`evaluations` at most): what the winner truly loses against the optimum and against the best that was measured,
/// what the session says of it, and how often something was measured again.
void print_noise_table(const NoiseTableOptions& options);

// Several objectives: how much of the true front's volume searches reach.
struct ParetoTableOptions {
  std::vector<std::string> files;  ///< recordings with time and energy
  std::size_t spaces = 0;          ///< drawn spaces beside them
  std::vector<std::string> strategies{"auto", "nsga2", "random"};
  std::size_t repeats = 10, slots = 1;
  std::uint64_t first = 1;  ///< seed of the first space
  int threads = 0;
};

/// Hypervolume up to 1.1 times the true front's worst values, as a share of the true front's, after 50, 100 and 200
/// evaluations: of recordings time and energy, of drawn spaces (cliffs.hpp) time and energy, and time, energy and
/// error.
void print_pareto_table(const ParetoTableOptions& options);

// A second device: how soon a search arrives with the recording of another device as its prior.
struct PriorTableOptions {
  std::vector<std::string> files;
  std::vector<std::string> kinds{"prior", "inverted", "shuffled", "foreign"};
  std::string strategy = "auto";
  std::size_t repeats = 10, evaluations = 300;
  std::uint64_t first = 1;  ///< seed
  int threads = 0;
};

/// For each two recordings of one kernel, a target and a prior: expected evaluations to within 1 % of the optimum, mean
/// loss after 50, and how many of the seeds differ in their first ten requests, without the prior and with it as it is,
/// with its values inverted, or shuffled. "foreign": a recording of another kernel. Everything is replayed.
void print_prior_table(const PriorTableOptions& options);

// How far searches get in a given wall time, from one recording with what every configuration cost.
struct WallTableOptions {
  std::string file;
  std::vector<std::string> strategies{"auto", "random"};
  std::vector<double> looks{10, 30, 60};  ///< s of wall time
  std::size_t repeats = 10, jobs = 14;    ///< compile workers
  std::uint64_t first = 1;                ///< seed
  int threads = 0;
};

/// Replays a live session's order of events: workers compile ahead, side by side; one runner measures; asking and
/// telling take the strategy's own time here (CPU time of its thread), and wait for nothing but results. Prints per
/// strategy the loss against the recording's optimum at each look, and how many configurations a second came in all and
/// after the best had been found. Everything is replayed but the thinking.
void print_wall_table(const WallTableOptions& options);

}  // namespace ergotune
