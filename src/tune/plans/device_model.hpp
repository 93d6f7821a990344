// The power-frequency model of a GPU: measured once with a kernel that loads all of it, kept beside the GPU's
// calibration, and used by every problem that says "model" (Going Green, Section V-D: the fit belongs to the GPU, not
// to the kernel).
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "model/power_model.hpp"
#include "model/power_samples.hpp"
#include "power/controls/control.hpp"
#include "tune/plans/sample_clocks.hpp"
#include "tune/session/session_setup.hpp"

namespace ergotune {

/// What a fit belongs to: it does not hold for another GPU, or under another driver.
struct ModelledDevice {
  std::string gpu;     ///< Control::device_key(): the UUID; a simulated device's or recording's name
  std::string driver;  ///< of the GPU, as its sensors report it; empty where unknown
};

struct DeviceModel {
  ModelledDevice of;
  PowerSampling sampling;
  PowerModel model;
  /// s since the epoch, of the last sample.
  double made_at = 0;
};

/// The fit of these samples over the clocks that they were requested.
PowerModel fit_samples(const PowerSampling& sampling);

/// The largest power of the samples, W: a model holds for kernels up to about that.
double greatest_load(const PowerSampling& sampling);
/// Why samples of such a load say nothing of a device with this power limit (W, where one is known): it ran on another
/// device, or was too light. Such a load leaves the power far below the limit, or the same at every clock. Empty where
/// it did load the device.
std::string why_no_load(const PowerSampling& sampling, std::optional<double> limit_watts);

/// The supported clock with least modelled energy, MHz.
double optimal_clock(const DeviceModel& model);

/// The supported clocks within `share` of the model's optimum, ascending: the values of `core_clock_mhz = "model"`. The
/// one nearest to the optimum is among them. Empty where the model is not usable.
std::vector<double> suggested_clocks(const DeviceModel& model, double share = 0.1);

/// Where the fit of a GPU is kept; empty when there is no home for it (HOME, ERGOTUNE_DATA_DIR).
std::filesystem::path device_model_file(const std::string& gpu);
/// Keeps samples and fit with its intervals; the file. Throws Error when that is impossible.
std::filesystem::path store_device_model(const DeviceModel& model);

/// What is kept of a GPU, and what is to be said of it.
struct StoredDeviceModel {
  /// nullopt: none, or one of another driver or of other clocks, which is not to be used.
  std::optional<DeviceModel> model;
  /// Why there is none, or that it is old; empty where all is well.
  std::string note;
};
/// `supported_mhz`: the clocks that the GPU lists now; empty: not compared.
StoredDeviceModel load_device_model(const ModelledDevice& of, const std::vector<double>& supported_mhz);

struct DeviceModelOptions {
  /// Device, controls, sensors, where samples are kept so that a killed sweep goes on.
  SetupOptions setup;
  SamplingOptions sampling;
  const std::atomic<bool>* interrupted = nullptr;
  /// What is to be said at once, line by line.
  std::function<void(const std::string&)> tell;
};

/// Sweeps the full-load kernel over a few clocks, and fits. On a live device the sweep goes through a ControlSession as
/// any tuning does, and core voltages are read where available. Throws UserError where clocks cannot be set, Error when
/// interrupted.
DeviceModel measure_device_model(const DeviceModelOptions& options);

/// The model of a target's GPU: the one that is kept, else measured now on `device` and kept. `notes` receives where
/// it comes from, and that it is old.
DeviceModel model_of_gpu(const SetupOptions& options, const std::string& device, Control& control,
                         std::vector<std::string>& notes);

/// The driver that a GPU's own sensors name; empty where they name none. `sensors`: ids, or none for the GPU's own.
std::string driver_of_device(const std::string& gpu, const std::vector<std::string>& sensors);

}  // namespace ergotune
