// A simulated device: a profile (profiles/*.toml) and a model of the kernel give time, power and energy of
// every configuration. For trying strategies and plans without hardware, and for tests that know the true
// optimum. Nothing that comes from here is measured, and every result says so (Provenance::simulated).
//
// The kernel is described by the problem's optional table [simulation], expressions over its parameters,
// constants and device.*; what is not given has a default, so that any problem can be simulated:
//   flops          floating-point operations of one launch                    (2e11)
//   bytes          bytes moved to and from device memory by one launch        (a tenth of flops, by the
//   parameters) threads        threads per block                                          (the launch
//   geometry, else block_size_*) blocks         blocks (the launch geometry, else 8 waves) registers
//   registers per thread                                       (40) shared_bytes   shared memory per block
//   (the launch geometry's) efficiency     share of peak that the instruction mix allows, 0 .. 1      (by the
//   parameters, see below) power          dynamic power relative to a stream of fused multiply-adds  (1)
// Without an efficiency each code parameter has a best value, and pairs of them interact, fixed by their
// names: the landscape has local optima, and it is the same on every machine.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ergotune/problem.hpp"
#include "evaluate/evaluator.hpp"
#include "power/controls/control.hpp"
#include "problem/tables/device_profile.hpp"

namespace ergotune {

struct SimulationOptions {
  std::uint64_t seed = 1;
  /// Relative standard deviations of single measurements.
  double time_noise = 0.003, power_noise = 0.01;
  /// What an evaluation is said to cost, s: compiling, and the energy measurement beside the launches
  /// themselves.
  double compile_seconds = 1.0, energy_seconds = 1.0;
  /// Launches timed per evaluation.
  int launches = 32;
  /// GPUs that share the work. The first is as the profile says; the others differ from it, fixed by the seed, in
  /// time by a percent and in power by three (relative standard deviations).
  int gpus = 1;
};

/// A kernel on a simulated device.
class SimulatedDevice {
 public:
  /// `parameters` are the search space's, in order, execution parameters included. Throws UserError for a
  /// profile without the numbers needed, or an expression of [simulation] that cannot be evaluated.
  SimulatedDevice(DeviceProfile profile, const Problem& problem, std::vector<Parameter> parameters,
                  const SimulationOptions& options = {});
  SimulatedDevice(SimulatedDevice&&) noexcept;
  ~SimulatedDevice();

  const DeviceProfile& profile() const;
  /// Without noise: what plans are judged by. Clocks that the power limit does not allow run at the highest
  /// that it does, with a warning.
  Measurement truth(const Configuration& configuration) const;
  /// With noise, fixed by the seed, the configuration and `repeat` (0 for a first measurement).
  Measurement measure(const Configuration& configuration, std::uint64_t repeat = 0) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The clocks and limits of a profile, as a control that lists them and sets nothing.
std::unique_ptr<Control> make_profile_control(const DeviceProfile& profile);

/// The core clocks of a profile, ascending, MHz.
std::vector<double> core_clocks(const DeviceProfile& profile);

/// Puts the profile's values into the problem's execution parameters and appends them to problem.parameters,
/// as for a real device; they are then no longer in problem.execution_parameters. `suggested` serves
/// `core_clock_mhz = "model"`.
void resolve_execution_parameters(Problem& problem, const DeviceProfile& profile,
                                  const std::map<ParameterKind, std::vector<double>>& suggested = {});

/// `space` was built from `problem` after resolve_execution_parameters().
std::unique_ptr<Evaluator> make_simulated(const DeviceProfile& profile, const Problem& problem,
                                          const SearchSpace& space, const SimulationOptions& options = {});

/// The problem behind the power model, examples/clocks/full_load.toml: a kernel of fused multiply-adds that
/// loads every multiprocessor, with the core clock as its only parameter of several values (Going Green,
/// Section V-D). It runs on real devices as well as simulated ones.
Problem full_load_problem();

}  // namespace ergotune
