// What a target's clocks are beside their list: the base clock, and the clocks that a model suggests.
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

/// MHz: what the maker calls the base clock. From a profile of that name, else from the driver's default application
/// clock where that lies below the highest clock; nullopt where unknown.
std::optional<double> base_clock_of(const std::string& device_name, Control& control);

/// Parameters that Kernel Tuner sets through a driver (nvml_gr_clock, nvml_mem_clock: MHz; nvml_pwr_limit: W;
/// tegra_gr_clock: Hz) become clocks and limits here as well, under their names. True when there are any.
bool take_clock_parameters(Problem& problem);

/// The energy observer is given an option that an objective or a metric needs, where the user gave none: the pause in
/// which idle power is measured, the temperature to which energies are corrected.
void ask_of_energy(Problem& problem, const LiveOptions& live, const std::string& option, double value);

/// Fills in target.device_model where the problem asks for it (`core_clock_mhz = "model"`) or options.needs_model does:
/// the kept fit, else one made now. The values that "model" stands for.
std::map<ParameterKind, std::vector<double>> clocks_by_model(Target& target, const SetupOptions& options,
                                                             Control& control);
/// The same for a simulated device, whose model is sampled from its own simulation; and for a recording.
std::map<ParameterKind, std::vector<double>> clocks_by_simulation(Target& target, const SetupOptions& options);
void model_of_recording(Target& target, const SetupOptions& options, const Recording& recording);

}  // namespace ergotune
