// The base clock of a target, and the clocks that a model suggests.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "power/controls/control.hpp"
#include "problem/tables/device_profile.hpp"
#include "store/formats/recording.hpp"
#include "tune/target/target.hpp"

namespace ergotune {

/// The vendor's base clock in MHz: from a profile of that name, else the driver's default application clock if it is
/// below the highest clock; nullopt: unknown.
std::optional<double> base_clock_of(const std::string& device_name, Control& control);

/// Converts parameters that Kernel Tuner applies through a driver (nvml_gr_clock, nvml_mem_clock: MHz; nvml_pwr_limit:
/// W; tegra_gr_clock: Hz) to clocks and limits under the same names. Returns whether there were any.
bool convert_clock_parameters(Problem& problem);

/// Sets an option of the energy observer that an objective or a metric needs, unless the user has set it: the pause in
/// which idle power is measured, the temperature to which energies are corrected.
void set_energy_option(Problem& problem, const LiveOptions& live, const std::string& option, double value);

/// If the problem uses a model (`core_clock_mhz = "model"`) or options.needs_model is set, sets target.device_model to
/// the stored fit, else to a new one. Returns the values that replace "model".
std::map<ParameterKind, std::vector<double>> clocks_by_model(Target& target, const SetupOptions& options,
                                                             Control& control);
/// The same for a simulated device, whose model is fitted to samples of its simulation, and for a recording.
std::map<ParameterKind, std::vector<double>> clocks_by_simulation(Target& target, const SetupOptions& options);
void model_of_recording(Target& target, const SetupOptions& options, const Recording& recording);

}  // namespace ergotune
