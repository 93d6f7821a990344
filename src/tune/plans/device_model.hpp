// The power-frequency model of a GPU: measured once with a kernel that loads the whole GPU, stored beside the GPU's
// calibration, and used by every problem with a clock "model" (Going Green, Section V-D: the fit is a property of the
// GPU, not of the kernel).
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

/// The GPU and driver for which a fit is valid.
struct ModelledDevice {
  std::string gpu;     ///< Control::device_key(): the UUID; for simulations and recordings, their name
  std::string driver;  ///< driver version of the GPU as its sensors report it; empty: unknown
};

struct DeviceModel {
  ModelledDevice of;
  PowerSampling sampling;
  PowerModel model;
  /// Time of the last sample, s since the epoch.
  double made_at = 0;
};

/// Fits the model to samples over the requested clocks.
PowerModel fit_samples(const PowerSampling& sampling);

/// The largest power of the samples, W. The model is valid for kernels up to about this power.
double max_power(const PowerSampling& sampling);
/// Checks that the samples come from a loaded device with this power limit (W; nullopt: unknown). If the load ran on
/// another device or was too light, the power is far below the limit or the same at every clock. Returns the reason for
/// rejecting the samples; empty if they are valid.
std::string load_error(const PowerSampling& sampling, std::optional<double> limit_watts);

/// The supported clock with the least modelled energy, MHz.
double optimal_clock(const DeviceModel& model);

/// The supported clocks within `share` of the model's optimum, ascending: the values of `core_clock_mhz = "model"`. The
/// clock nearest to the optimum is always included. Empty if the model is not usable.
std::vector<double> suggested_clocks(const DeviceModel& model, double share = 0.1);

/// The file that stores the fit of a GPU; empty if neither HOME nor ERGOTUNE_DATA_DIR is set.
std::filesystem::path device_model_file(const std::string& gpu);
/// Stores samples, fit and its intervals, and returns the file. Throws Error on failure.
std::filesystem::path store_device_model(const DeviceModel& model);

/// A stored fit, and a note for the user.
struct StoredDeviceModel {
  /// nullopt: none is stored, or it was made under another driver or with other clocks and must not be used.
  std::optional<DeviceModel> model;
  /// Why there is no model, or that it is old; empty otherwise.
  std::string note;
};
/// `supported_mhz`: the clocks that the GPU supports now; empty: not compared with those of the fit.
StoredDeviceModel load_device_model(const ModelledDevice& of, const std::vector<double>& supported_mhz);

struct DeviceModelOptions {
  /// Device, controls, sensors, and the store from which an interrupted sweep continues.
  SetupOptions setup;
  SamplingOptions sampling;
  const std::atomic<bool>* interrupted = nullptr;
  /// Receives messages for the user, line by line.
  std::function<void(const std::string&)> notify;
};

/// Measures the full-load kernel at a few clocks and fits the model. On a live device the sweep uses a ControlSession
/// like any tuning, and reads core voltages if available. Throws UserError if clocks cannot be set, Error when
/// interrupted.
DeviceModel measure_device_model(const DeviceModelOptions& options);

/// The model of a target's GPU: the stored fit, else a new one, measured on `device` and stored. Appends to `notes`
/// where the model comes from and whether it is old.
DeviceModel model_of_gpu(const SetupOptions& options, const std::string& device, Control& control,
                         std::vector<std::string>& notes);

/// The driver version that the sensors of a GPU report; empty if they report none. `sensors`: sensor ids; empty: the
/// sensors of the GPU itself.
std::string driver_of_device(const std::string& gpu, const std::vector<std::string>& sensors);

}  // namespace ergotune
