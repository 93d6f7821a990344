#include "api/diagnosis.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.hpp"
#include "device/backend.hpp"
#include "device/cuda/nvrtc_api.hpp"
#include "device/driver_trial.hpp"
#include "ergotune/session.hpp"
#include "kernel/compile_cache.hpp"
#include "power/controls/control.hpp"
#include "power/guardian/guardian.hpp"
#include "power/nvml_library.hpp"
#include "power/sensors/sensor.hpp"

namespace ergotune {
namespace {

using State = Finding::State;

// The same problem in each language; the kernel uses the configuration's macro.
constexpr const char* kProblem = R"toml(
name = "ergotune_doctor"
[constants]
COUNT = {3}
[parameters]
FACTOR = [2]
[kernel]
function = "doctor"
arguments = [
  {{ name = "x", type = "float32", count = "COUNT", fill = 3 }},
  {{ name = "y", type = "float32", count = "COUNT", access = "write" }},
]
[kernel.source.{0}]
text = '''
{1}
'''
[kernel.launch]
global = ["COUNT"]
block = ["min(64, device.max_threads_per_block)"]
[verification.files]
y = '{2}'
)toml";
constexpr std::size_t kCount = 65536;

constexpr const char* kCuda =
    "extern \"C\" __global__ void doctor(const float* x, float* y) { int i = blockIdx.x * blockDim.x + threadIdx.x; "
    "y[i] = FACTOR * x[i]; }";
constexpr const char* kOpenCl =
    "__kernel void doctor(__global const float* x, __global float* y) { int i = get_global_id(0); y[i] = FACTOR * "
    "x[i]; }";
constexpr const char* kC =
    "void doctor(const float* x, float* y) { for (int i = 0; i < COUNT; ++i) y[i] = FACTOR * x[i]; }";

/// The expected output of the kernel, as a file: a reference function would need a C compiler, which GPUs do not.
class ExpectedFile {
 public:
  ExpectedFile() {
    path_ = (std::filesystem::temp_directory_path() / "ergotune-doctor-XXXXXX").string();
    const int descriptor = ::mkstemp(path_.data());
    if (descriptor < 0) throw Error(fmt::format("cannot make a file {}", path_));
    ::close(descriptor);
    const std::vector<float> values(kCount, 6.0f);
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(kCount * sizeof(float)));
  }
  ~ExpectedFile() { ::unlink(path_.c_str()); }
  ExpectedFile(const ExpectedFile&) = delete;
  ExpectedFile& operator=(const ExpectedFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Finding run_kernel(const DeviceInfo& device, const std::string& command) {
  Finding finding{State::failed, "kernels", device.id, "", ""};
  const Language language = device::backend_named(device.backend).languages.front();
  const char* source = language == Language::opencl                              ? kOpenCl
                       : language == Language::cuda || language == Language::hip ? kCuda
                                                                                 : kC;
  try {
    const ExpectedFile expected;
    TuneOptions options;
    options.command = command;
    options.settings = {{"device", device.id}, {"confirm", "false"}, {"jobs", "1"}};
    const TuneResult result =
        tune(parse_problem(fmt::format(kProblem, to_string(language), source, expected.path(), kCount), "doctor.toml"),
             options);
    if (!result.best.empty()) {
      finding.state = State::ok;
      finding.message = fmt::format("{}: a kernel was compiled, ran, and its result is right", device.name);
    } else {
      finding.message = result.default_result ? result.default_result->measurement.message : "the kernel did not run";
    }
  } catch (const std::exception& error) {
    finding.message = error.what();
  }
  if (finding.state == State::failed && device.backend == "host")
    finding.remedy =
        "functions and references in C, C++ and Fortran need a compiler (Debian: apt install gcc g++ gfortran)";
  return finding;
}

void look_at_kernels(Diagnosis& diagnosis, const std::vector<DeviceInfo>& devices,
                     const std::vector<std::string>& notes, const std::vector<std::string>& crashing,
                     const std::string& command) {
  for (const DeviceInfo& device : devices) diagnosis.findings.push_back(run_kernel(device, command));
  static const std::map<std::string, std::string> kRemedies{
      {"cuda", "for an NVIDIA GPU: install its driver; in a container, start it with --gpus all"},
      {"hip", "for an AMD GPU: install ROCm (Debian: libamdhip64-5), and join the groups render and video"},
      {"opencl",
       "install the GPU's OpenCL, or for the CPU PoCL (Debian: apt install pocl-opencl-icd ocl-icd-libopencl1)"}};
  for (const std::string& note : notes) {
    const std::string backend = note.substr(0, note.find(':'));
    const auto remedy = kRemedies.find(backend);
    Finding finding{State::absent, "kernels", backend, note.substr(std::min(note.size(), backend.size() + 2)),
                    remedy == kRemedies.end() ? "" : remedy->second};
    if (std::ranges::find(crashing, backend) != crashing.end()) {
      finding.state = State::failed;
      finding.remedy =
          "reinstall or remove the driver to which these libraries belong; a container or chroot needs /sys and /proc "
          "(PoCL does not start without)" +
          std::string(backend == "opencl" ? "; OCL_ICD_VENDORS=FOLDER uses only the OpenCL drivers (*.icd) of a folder"
                                          : "");
    }
    diagnosis.findings.push_back(std::move(finding));
  }
}

/// NVRTC also compiles for GPUs that are not here.
void look_at_nvrtc(Diagnosis& diagnosis) {
  const nvrtc::Api& nvrtc = nvrtc::api();
  if (!nvrtc.usable()) {
    diagnosis.findings.push_back({State::absent, "compilers", "NVRTC", nvrtc.problem(),
                                  "for CUDA C++: install the CUDA toolkit or, with pip, nvidia-cuda-nvrtc; "
                                  "ERGOTUNE_NVRTC names a library elsewhere"});
    return;
  }
  int major = 0, minor = 0;
  nvrtc.nvrtcVersion(&major, &minor);
  diagnosis.findings.push_back(
      {State::ok, "compilers", "NVRTC", fmt::format("{}.{}, {}", major, minor, nvrtc::library_file(nvrtc)), ""});
}

void look_at_energy(Diagnosis& diagnosis, const DeviceInfo& device) {
  std::vector<std::string> missing, ids;
  for (const auto& sensor : sensors_for_device(device.uuid, device.pci_address, device.is_cpu, &missing))
    ids.push_back(sensor->info().id);
  if (!ids.empty()) {
    diagnosis.findings.push_back({State::ok, "energy", device.id, fmt::format("{}", fmt::join(ids, ", ")), ""});
    return;
  }
  const std::string reasons = fmt::format("{}", fmt::join(missing, "; "));
  const bool unreadable = reasons.find("ermission") != std::string::npos;
  diagnosis.findings.push_back({State::absent, "energy", device.id, "no sensor; time can be tuned (" + reasons + ")",
                                unreadable
                                    ? "as root: chmod a+r /sys/class/powercap/*/energy_uj"
                                    : "the page \"Energy\" of the documentation lists the sensors that are supported"});
}

void look_at_clocks(Diagnosis& diagnosis, const DeviceInfo& device) {
  std::string why_not;
  const auto control = control_for_device(device.uuid, device.pci_address, device.is_cpu, &why_not);
  if (control && control->permitted())
    diagnosis.findings.push_back({State::ok, "clocks", device.id, fmt::format("{} can be set", control->id()), ""});
  else
    diagnosis.findings.push_back(
        {State::absent, "clocks", device.id, control ? "may not be set by this user" : why_not,
         "code parameters can be tuned without; the page \"Clocks and power limits\" shows how to allow clocks"});
}

void look_at_journals(Diagnosis& diagnosis) {
  for (const JournalStatus& journal : list_journals())
    if (!journal.session.alive && !journal.being_restored)
      diagnosis.findings.push_back(
          {State::failed, "clocks", journal.device,
           journal.damaged.empty() ? "a session ended without restoring its settings" : journal.damaged,
           "ergotune clocks restore"});
}

void look_at_sharing(Diagnosis& diagnosis, const DeviceInfo& device) {
  for (const std::string& note : nvml_sharing_notes(device.uuid, device.pci_address))
    diagnosis.findings.push_back(
        {State::warning, "machine", device.id, note,
         "the page \"Questions and troubleshooting\" of the documentation describes MIG, exclusive mode and MPS"});
}

void look_at_folder(Diagnosis& diagnosis, const std::filesystem::path& folder, const std::string& purpose,
                    const std::string& remedy) {
  std::filesystem::path existing = folder;
  while (!existing.empty() && !std::filesystem::exists(existing) && existing.has_parent_path() &&
         existing != existing.parent_path())
    existing = existing.parent_path();
  Finding finding{State::ok, "storage", folder.string(), purpose, ""};
  if (::access(existing.empty() ? "." : existing.c_str(), W_OK) != 0) {
    finding = {State::failed, "storage", folder.string(), purpose + ": cannot be written", remedy};
  } else if (const std::string network = network_filesystem(existing); !network.empty()) {
    finding = {State::warning, "storage", folder.string(),
               fmt::format("{}: on {}, where each row waits for the server", purpose, network), remedy};
  }
  diagnosis.findings.push_back(std::move(finding));
}

void look_at_load(Diagnosis& diagnosis) {
  if (const std::string note = note_of_load(0.5); !note.empty())
    diagnosis.findings.push_back(
        {State::warning, "machine", "load", note, "end other programs before kernels of this CPU are tuned"});
}

}  // namespace

std::string note_of_load(double per_cpu) {
  double load = 0;
  const double processors = std::max(1u, std::thread::hardware_concurrency());
  if (::getloadavg(&load, 1) != 1 || load <= per_cpu * processors) return {};
  return fmt::format("{:.1f} processes run on {:.0f} CPUs: measured times will vary", load, processors);
}

std::string to_string(Finding::State state) {
  constexpr std::array kNames = {"ok", "absent", "warning", "failed"};
  return kNames.at(static_cast<std::size_t>(state));
}

bool Diagnosis::can_tune() const {
  return std::ranges::any_of(
      findings, [](const Finding& finding) { return finding.area == "kernels" && finding.state == State::ok; });
}

Diagnosis diagnose(const std::string& command) {
  Diagnosis diagnosis;
  std::vector<std::string> notes;
  const std::vector<std::string> crashing = device::leave_out_crashing_drivers(command);
  const std::vector<DeviceInfo> devices = list_devices(&notes);
  look_at_kernels(diagnosis, devices, notes, crashing, command);
  look_at_nvrtc(diagnosis);
  for (const DeviceInfo& device : devices) look_at_energy(diagnosis, device);
  for (const DeviceInfo& device : devices) look_at_clocks(diagnosis, device);
  look_at_journals(diagnosis);
  look_at_folder(diagnosis, std::filesystem::current_path(), "results (ergotune.db)",
                 "--store FILE keeps results elsewhere");
  if (const auto cache = CompileCache::default_folder(); !cache.empty())
    look_at_folder(diagnosis, cache, "compiled code", "XDG_CACHE_HOME names another folder");
  for (const DeviceInfo& device : devices) look_at_sharing(diagnosis, device);
  look_at_load(diagnosis);
  return diagnosis;
}

nlohmann::ordered_json diagnosis_document(const Diagnosis& diagnosis) {
  nlohmann::ordered_json findings = nlohmann::ordered_json::array();
  for (const Finding& finding : diagnosis.findings)
    findings.push_back({{"area", finding.area},
                        {"subject", finding.subject},
                        {"state", to_string(finding.state)},
                        {"message", finding.message},
                        {"remedy", finding.remedy}});
  return {{"can_tune", diagnosis.can_tune()}, {"findings", std::move(findings)}};
}

}  // namespace ergotune
