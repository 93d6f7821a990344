// The core voltage of a GPU from sources other than NVML.
#include <sstream>

#include "base/process/environment.hpp"
#include "base/process/process.hpp"
#include "base/sysfs.hpp"
#include "ergotune/error.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune {
namespace {

/// s; nvidia-smi may block if a GPU is lost
constexpr double kPatience = 3;

std::optional<double> from_nvidia_smi(const std::string& uuid) {
  std::string program = environment_variable("ERGOTUNE_NVIDIA_SMI");
  if (program.empty()) program = "nvidia-smi";
  ProcessOptions options;
  options.timeout = kPatience;
  options.output_limit = 1u << 16;
  try {
    const ProcessResult result = run_process({program, "-i", uuid, "-q", "-d", "VOLTAGE"}, options);
    return result.ok() ? voltage_in(result.out) : std::nullopt;
  } catch (const Error&) {
    return std::nullopt;  // the program does not exist
  }
}

/// Reads a regulator named after the GPU's supply: "vdd-gpu", "vdd_gpu_soc"; uV.
std::optional<double> from_regulators() {
  const Sysfs sysfs = Sysfs::from_environment();
  const std::filesystem::path folder = "/sys/class/regulator";
  for (const std::string& entry : sysfs.list(folder)) {
    const auto name = sysfs.read(folder / entry / "name");
    if (!name || name->find("gpu") == std::string::npos) continue;
    const auto microvolts = sysfs.read_integer(folder / entry / "microvolts");
    if (microvolts && *microvolts > 100'000 && *microvolts < 3'000'000) return static_cast<double>(*microvolts) * 1e-6;
  }
  return std::nullopt;
}

}  // namespace

std::optional<double> voltage_in(const std::string& output) {
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos || line.find("Graphics") > colon) continue;
    double millivolts = 0;
    std::string unit;
    std::istringstream value(line.substr(colon + 1));
    if (value >> millivolts >> unit && unit == "mV" && millivolts > 100 && millivolts < 3000) return millivolts * 1e-3;
  }
  return std::nullopt;
}

std::optional<double> read_core_voltage(const std::string& uuid) {
  if (uuid.starts_with("GPU-")) return from_nvidia_smi(uuid);
  return from_regulators();
}

}  // namespace ergotune
