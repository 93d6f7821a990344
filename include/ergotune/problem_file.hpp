// A problem as a file describes it: what is tuned, and the settings of a run: where, how and how long. Each setting has
// a row in the table of settings (problem/tables/setting_table.hpp), and that is all that problem files, the command
// line, Python and a session's conditions know of it. A new one is a member here and a row there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ergotune/problem.hpp"

namespace ergotune {

/// How one configuration is measured.
struct MeasureSettings {
  /// Stop when the half-width of the 95 % interval of the time is below this share of it.
  double precision = 0.01;
  int warm_up = 1;         ///< launches before the first timed one, besides the one that is verified
  int min_repeats = 7;     ///< timed samples at least (3 where the kernel is slow)
  int max_repeats = 1000;  ///< timed samples at most
  /// Timed launches may take this long (s) beyond what min_repeats needs; then the status is not_converged.
  double max_seconds = 0.25;
  bool cold_cache = false;  ///< flush the last-level cache before every timed launch
  bool verify = true;
  /// Energy over one long steady state of this many seconds, to compare short measurements with; 0: as short as the
  /// precision allows.
  double reference_seconds = 0;
};

/// What it is measured on, and by whom.
struct LiveSettings {
  /// "cuda:0", "opencl", "host" ...; empty: the best that compiles one of the problem's languages.
  std::string device;
  /// Compile workers; 0: one per core, less one for the runner where the device is not the CPU itself.
  int jobs = 0;
  /// s that one configuration may take on the device, verification included; then its process is ended: timeout.
  double time_limit = 30;
  /// s that one compilation may take.
  double compile_time_limit = 120;
  /// Energy by these sensors; none: the device's own best, where energy is wanted at all.
  std::vector<std::string> sensors;
  /// s of energy measurement per configuration; 0: the default.
  double energy_seconds = 0;
  bool use_cache = true;
  /// Where compiled code is kept; empty: $XDG_CACHE_HOME/ergotune/compiled.
  std::filesystem::path cache_folder;
  /// Energy is measured with the other devices of the node idle.
  bool quiet_node = false;
  /// Commands that start an agent on a node and give its pipe; {} stands for the agent. None: the devices of this
  /// machine.
  std::vector<std::string> node_commands;
  /// "slurm", or a file with such commands; empty: none.
  std::string nodes;
  /// s without a message after which a node is given up; it sends a heartbeat six times as often.
  double node_silence = 30;
};

/// The objective and the search. Strings as the command takes them.
struct SearchSettings {
  std::string objective;  ///< empty: the problem's own
  std::string strategy = "auto";
  std::map<std::string, Value> strategy_options;
  std::string budget;  ///< empty: until the strategy ends
  std::uint64_t seed = 1;
  std::string store;                  ///< empty: where the verb keeps results, if it does
  std::string plan;                   ///< empty: no plan, a search
  std::vector<std::string> controls;  ///< none: the device's own
  bool confirm = true;
  /// `auto` ends when nothing better is likely.
  bool early_stop = true;
  /// Only configurations in which the occupancy of every kernel is above this share are searched; 0: all.
  double occupancy = 0;
  /// s between measurements of the default on each of several devices, by which they are compared.
  double reference_every = 600;
  std::vector<std::string> prior;  ///< none: nothing but what this session has measured
};

struct RunConfig : MeasureSettings, LiveSettings, SearchSettings {};

/// A problem as a file describes it: with the run settings of its table [tune], over which the command line and
/// Python's keywords take precedence.
struct ProblemFile : Problem {
  ProblemFile() = default;
  ProblemFile(Problem problem) : Problem(std::move(problem)) {}
  RunConfig run;
};

// Reading and writing problem files.
/// Reads a problem: a native TOML or JSON file, T1 JSON, or the plain JSON form {"tune_params":{..},
/// "restrictions":[..],"max_threads":n}; distinguished by content. Throws UserError with file, line and column.
ProblemFile load_problem(const std::filesystem::path& file);

/// From text, as if it stood in `file` (relative paths resolve against its folder).
ProblemFile parse_problem(const std::string& text, const std::filesystem::path& file);

/// Everything that a worker process needs, as one self-contained JSON document (sources included), and back.
std::string serialise(const ProblemFile& problem);
ProblemFile deserialise(const std::string& document);

}  // namespace ergotune
