// The settings of a run: device, measurement, search. Each setting is a member here and a row in the table of settings
// (problem/tables/setting_table.hpp), from which problem files, the command line, Python and the session key take it.
// To add a setting, add a member and a row.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "ergotune/space.hpp"

namespace ergotune {

/// Settings of the measurement of one configuration.
struct MeasureSettings {
  /// The measurement ends when the half-width of the 95 % confidence interval of the time falls below this share of it.
  double precision = 0.01;
  int warm_up = 1;         ///< untimed launches before the first timed one, in addition to the verified launch
  int min_repeats = 7;     ///< minimum number of timed samples (3 for slow kernels)
  int max_repeats = 1000;  ///< maximum number of timed samples
  /// s that timed launches may take beyond what min_repeats needs; after that, the status is not_converged.
  double max_seconds = 0.25;
  bool cold_cache = false;  ///< flush the last-level cache before every timed launch
  bool verify = true;
  /// Duration in s of one long measurement of the energy in steady state, a reference for short measurements; 0: as
  /// short as the precision allows.
  double reference_seconds = 0;
};

/// Settings of the devices and of the processes that measure.
struct LiveSettings {
  /// Device, such as "cuda:0", "opencl" or "host"; empty: the best device that compiles one of the problem's languages.
  std::string device;
  /// Number of compile workers; 0: one per core, less one for the runner unless the device is the CPU.
  int jobs = 0;
  /// s that one configuration may occupy the device, including verification; after that its process is ended, with
  /// status timeout.
  double time_limit = 30;
  /// s that one compilation may take.
  double compile_time_limit = 120;
  /// Sensors from which energy is measured; none: the best sensor of the device, if energy is needed at all.
  std::vector<std::string> sensors;
  /// Duration of the energy measurement of one configuration in s; 0: the default.
  double energy_seconds = 0;
  bool use_cache = true;
  /// Folder of the compiled code; empty: $XDG_CACHE_HOME/ergotune/compiled.
  std::filesystem::path cache_folder;
  /// Measures on one device at a time while the node's other devices are idle, so that the node's own meters may be
  /// used.
  bool quiet_node = false;
  /// Commands that start a node agent and connect to its standard input and output; {} stands for the agent's command
  /// line. None: the devices of this machine are used.
  std::vector<std::string> node_commands;
  /// "slurm" (all nodes of the allocation), or a file with one node command per line; empty: none.
  std::string nodes;
  /// Seconds without a message after which a node is given up. Node agents send a heartbeat six times as often.
  double node_silence = 30;
};

/// The objective and the search, as the command's options give them.
struct SearchSettings {
  std::string objective;  ///< empty: the problem's objective
  std::string strategy = "auto";
  std::map<std::string, Value> strategy_options;
  std::string budget;  ///< empty: no limit, the strategy ends the search
  std::uint64_t seed = 1;
  std::string store;                  ///< empty: the default of the command, if it stores results
  std::string plan;                   ///< name of a plan; empty: a single search
  std::vector<std::string> controls;  ///< ids of controls; none: those of the device
  bool confirm = true;
  /// Lets the strategy `auto` end the search when an improvement is unlikely.
  bool early_stop = true;
  /// Searches only configurations in which the occupancy of every kernel is above this share; 0: all.
  double occupancy = 0;
  /// Longest time in s between baseline runs of the default configuration when several devices measure.
  double reference_every = 600;
  std::vector<std::string> prior;  ///< sources of prior results; none: only results of this session
};

struct RunConfig : MeasureSettings, LiveSettings, SearchSettings {};

}  // namespace ergotune
