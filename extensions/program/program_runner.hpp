// Runs one configuration of a program after the other and says what was found out.
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "evaluate/live/live_device.hpp"
#include "measure/energy/clock_watch.hpp"
#include "measure/energy/span_energy.hpp"
#include "measure/runner.hpp"
#include "program/program_build.hpp"
#include "program/program_output.hpp"
#include "program/program_templates.hpp"
#include "program/supervisor.hpp"

namespace ergotune {

/// How long and how well a program is measured, where the settings say nothing: a run takes longer than a kernel's, and
/// scatters more.
inline constexpr double kProgramPrecision = 0.02;
inline constexpr double kProgramSeconds = 10;
inline constexpr int kProgramRepeats = 5;

class ProgramRunner {
 public:
  /// `supervisor` starts the process that runs programs. Energy by `sensors`, whose energies are added; none: no
  /// energy. Throws UserError for a program that is not there.
  ProgramRunner(const Problem& problem, const Constants& constants, const LiveOptions& options,
                std::vector<std::string> supervisor, std::vector<std::unique_ptr<Sensor>> sensors);

  /// Builds, runs, checks, and runs it again until time and energy are known well enough. Never throws for what the
  /// configuration does wrong.
  Measurement run(const Configuration& configuration, const RunOptions& options);
  /// From any thread: ends what runs. run() then returns a timeout that means nothing.
  void stop() {
    stopping_ = true;
    supervisor_.stop();
  }

 private:
  struct Sample {
    TimeSpan span;
    double time = 0;  ///< s of a run
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
  std::filesystem::path output_;  ///< the first run's whole standard output, where its check looks at that
  OutputPatterns patterns_;
  Supervisor supervisor_;
  std::atomic<bool> stopping_ = false;
  ProgramBuilds builds_;
  SensorRecorder recorder_;
  ClockWatch watch_;
};

}  // namespace ergotune
