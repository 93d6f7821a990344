// A simulated device: computes time, power and energy of every configuration from a profile (profiles/*.toml) and a
// model of the kernel. For trying strategies and plans without hardware, and for tests that need the true optimum.
// Every result is marked as simulated (Provenance::simulated).
//
// The kernel is described by the optional table [simulation] of the problem: expressions over its parameters, constants
// and device.*. All have defaults, in parentheses, so that any problem can be simulated:
// - flops: floating-point operations of one launch (2e11)
// - bytes: bytes moved from and to device memory by one launch (a tenth of flops, varied by the parameters)
// - threads: threads per block (from the launch geometry, else block_size_*)
// - blocks: number of blocks (from the launch geometry, else 8 waves)
// - registers: registers per thread (40)
// - shared_bytes: shared memory per block (from the launch geometry)
// - efficiency: share of the peak that the instruction mix allows, 0 to 1 (by the parameters, see below)
// - power: dynamic power relative to a stream of fused multiply-adds (1)
//
// Without an efficiency, each code parameter has a best value and pairs of parameters interact, both determined by
// their names: the landscape has local optima and is the same on every machine.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "evaluate/evaluator.hpp"
#include "power/controls/control.hpp"
#include "problem/tables/device_profile.hpp"

namespace ergotune {

struct Problem;

struct SimulationOptions {
  std::uint64_t seed = 1;
  /// Relative standard deviations of single measurements.
  double time_noise = 0.003, power_noise = 0.01;
  /// The simulated cost of an evaluation, s: compilation, and the energy measurement in addition to the launches.
  double compile_seconds = 1.0, energy_seconds = 1.0;
  /// Timed launches per evaluation.
  int launches = 32;
  /// GPUs that share the requests. The first is as in the profile. The others differ from it by factors that the seed
  /// determines, with relative standard deviations of one per cent in time and three in power.
  int gpus = 1;
};

/// A kernel on a simulated device.
class SimulatedDevice {
 public:
  /// `parameters`: those of the search space, in its order, execution parameters included. Throws UserError if the
  /// profile lacks a required number, or an expression of [simulation] cannot be evaluated.
  SimulatedDevice(DeviceProfile profile, const Problem& problem, std::vector<Parameter> parameters,
                  const SimulationOptions& options = {});
  SimulatedDevice(SimulatedDevice&&) noexcept;
  ~SimulatedDevice();

  const DeviceProfile& profile() const;
  /// Values without noise, by which plans are judged. Clocks that the power limit does not allow are replaced by the
  /// highest allowed one, with a warning.
  Measurement truth(const Configuration& configuration) const;
  /// Values with noise, which seed, configuration and `repeat` (0 for a first measurement) determine.
  Measurement measure(const Configuration& configuration, std::uint64_t repeat = 0) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A control that lists the clocks and limits of a profile and sets nothing.
std::unique_ptr<Control> make_profile_control(const DeviceProfile& profile);

/// The core clocks of a profile, ascending, MHz.
std::vector<double> core_clocks(const DeviceProfile& profile);

/// Replaces the execution parameters of the problem by parameters with the profile's values, appended to
/// problem.parameters, as for a real device. `suggested`: the values for `core_clock_mhz = "model"`.
void resolve_execution_parameters(Problem& problem, const DeviceProfile& profile,
                                  const std::map<ParameterKind, std::vector<double>>& suggested = {});

/// `space` must have been built from `problem` after resolve_execution_parameters().
std::unique_ptr<Evaluator> make_simulated(const DeviceProfile& profile, const Problem& problem,
                                          const SearchSpace& space, const SimulationOptions& options = {});

/// The problem for fitting the power model, examples/clocks/full_load.toml: a kernel of fused multiply-adds that loads
/// all SMs or CUs, whose only parameter with several values is the core clock (Going Green, Section V-D). It runs on
/// real and simulated devices.
Problem full_load_problem();

}  // namespace ergotune
