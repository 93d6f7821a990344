// Runs one configuration of a program after the other and measures it, with the energy of its runs.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "ergotune/result.hpp"
#include "evaluate/live/live_device.hpp"
#include "measure/energy/clock_watch.hpp"
#include "measure/energy/span_energy.hpp"
#include "measure/runner.hpp"
#include "program/program_build.hpp"
#include "program/program_output.hpp"
#include "program/supervisor.hpp"

namespace ergotune {

/// Precision, longest time (s) and repeats of a program's measurement where the settings have the defaults: runs take
/// longer and vary more than those of a kernel.
inline constexpr double kProgramPrecision = 0.02;
inline constexpr double kProgramSeconds = 10;
inline constexpr int kProgramRepeats = 5;

class ProgramRunner {
 public:
  /// `supervisor`: command of the process that runs programs. `sensors`: their energies are added; empty: no energy is
  /// measured. Throws UserError if the program does not exist.
  ProgramRunner(const Problem& problem, const Constants& constants, const LiveOptions& options,
                std::vector<std::string> supervisor, std::vector<std::unique_ptr<Sensor>> sensors);

  /// Builds, runs and checks the program, and repeats the run until time and energy are known precisely enough.
  /// Failures of the configuration are returned as statuses.
  Measurement run(const Configuration& configuration, const RunOptions& options);
  /// Ends the running program; run() then returns a timeout without meaning. Thread-safe.
  void stop() {
    stopping_ = true;
    supervisor_.stop();
  }

 private:
  struct Sample {
    TimeSpan span;
    double time = 0;  ///< s per run
    double cpu_seconds = 0;
    std::uint64_t peak_bytes = 0;
    std::map<std::string, double> numbers;
  };
  struct Here;

  bool prepare(Here& here);
  SupervisedResult run_once(Here& here);
  SupervisedResult run_first(bool checked, Here& here);
  bool judge(const SupervisedResult& result, Here& here) const;
  bool check(const SupervisedResult& result, Here& here);
  bool check_file(Here& here) const;
  bool take_sample(std::size_t runs, Here& here);
  void take_samples(double first_seconds, const RunOptions& options, Here& here);
  bool enough(const RunOptions& options, Here& here);
  void note_times(Here& here) const;
  void note_energy(Here& here) const;
  static std::vector<double> numbers_of(const std::vector<Sample>& samples, const std::string& name);
  static std::vector<double> times_of(const std::vector<Sample>& samples);
  double relative_error(const Here& here) const;
  double most_seconds() const;
  double reading_period(double run_seconds) const;
  std::size_t runs_per_sample(double run_seconds) const;

  const Problem& problem_;
  const Program& program_;
  const Constants& constants_;
  LiveOptions options_;
  double precision_, time_limit_;
  std::filesystem::path beside_;  ///< the problem file's folder
  ScratchFolder temporary_;
  std::filesystem::path output_;  ///< file of the first run's complete standard output, if the check needs it
  OutputPatterns patterns_;
  Supervisor supervisor_;
  std::atomic<bool> stopping_ = false;
  ProgramBuilds builds_;
  SensorRecorder recorder_;
  ClockWatch watch_;
};

struct EnergyOfRuns {
  std::string why_not;             ///< why there is no value; empty: there is one
  Quantity energy;                 ///< J per run
  Quantity power;                  ///< W during a run
  double relative_half_width = 0;  ///< half-width of the 95 % interval of the energy, relative to the energy
};

/// Sensors measure different parts (CPU and GPU), and their energies are added. Each span contains `runs` runs. The
/// standard error is the larger of the scatter of the samples and the uncertainty at the edges of the sensors'
/// readings, combined with the GPUs' repeatability and the uncertainty of their calibrations.
EnergyOfRuns energy_of_runs(const std::vector<SensorTrace>& traces, const std::vector<TimeSpan>& spans,
                            std::size_t runs);

}  // namespace ergotune
