// The vendor library's SGEMM, measured by the same means as a tuned kernel: the same launch stream, sensors,
// estimators. Needs a CUDA device, its energy sensor, and libcublas; changes no setting.
//
//   bench_vendor_gemm [SIZE] [REPEATS] [SECONDS]      default 2048 5 1
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "base/driver_table.hpp"
#include "base/statistics.hpp"
#include "device/device.hpp"
#include "ergotune/error.hpp"
#include "ergotune/random.hpp"
#include "measure/energy/energy.hpp"
#include "measure/observers/observation.hpp"
#include "measure/timing/workload.hpp"

namespace ergotune {
namespace {

// Our own declarations of the few functions of cuBLAS that are used (column-major SGEMM).
struct Cublas {
  int (*cublasCreate_v2)(void** handle) = nullptr;
  int (*cublasSetStream_v2)(void* handle, void* stream) = nullptr;
  int (*cublasSgemm_v2)(void* handle, int transa, int transb, int m, int n, int k, const float* alpha, const float* a,
                        int lda, const float* b, int ldb, const float* beta, float* c, int ldc) = nullptr;
};

struct LoadedCublas {
  DynamicLibrary library;
  Cublas functions;
};

LoadedCublas load_cublas() {
  std::vector<std::string> names;
  if (const char* named = std::getenv("ERGOTUNE_CUBLAS")) names.emplace_back(named);
  for (const char* name :
       {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so", "/usr/local/cuda/lib64/libcublas.so"})
    names.emplace_back(name);
  std::string reason;
  auto library = DynamicLibrary::open(names, &reason);
  if (!library) throw UserError("cuBLAS cannot be opened (ERGOTUNE_CUBLAS names it): " + reason);
  Cublas f;
  if (!library->load(f.cublasCreate_v2, "cublasCreate_v2") ||
      !library->load(f.cublasSetStream_v2, "cublasSetStream_v2") || !library->load(f.cublasSgemm_v2, "cublasSgemm_v2"))
    throw UserError("this cuBLAS lacks a function that is needed");
  return {std::move(*library), f};
}

/// Rounds of one call of cuBLAS.
class VendorGemm : public Workload {
 public:
  VendorGemm(Device& device, int n) : cublas_(load_cublas()), n_(n) {
    const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(n) * static_cast<std::size_t>(n);
    std::vector<float> values(static_cast<std::size_t>(n) * static_cast<std::size_t>(n));
    Random random(1);
    for (auto* buffer : {&a_, &b_, &c_}) {
      for (auto& v : values) v = static_cast<float>(2 * random.uniform() - 1);  // never zeros: they need less power
      *buffer = device.allocate(bytes);
      device.write(**buffer, std::as_bytes(std::span(values)));
    }
    if (cublas_.functions.cublasCreate_v2(&handle_) != 0) throw Error("cublasCreate failed");
    cublas_.functions.cublasSetStream_v2(handle_, device.main_queue().native_handle());
  }
  void launch(std::size_t rounds) override {
    const float alpha = 1, beta = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      const int status = cublas_.functions.cublasSgemm_v2(handle_, 0, 0, n_, n_, n_, &alpha, address(*a_), n_,
                                                          address(*b_), n_, &beta, address(*c_), n_);
      if (status != 0) throw DeviceError(DeviceFault::launch, fmt::format("cublasSgemm returned {}", status), status);
    }
  }

 private:
  static float* address(const Buffer& buffer) { return static_cast<float*>(buffer.native_handle()); }
  LoadedCublas cublas_;
  int n_;
  void* handle_ = nullptr;  // lives as long as the process: destroying it needs the context, which may go first
  std::unique_ptr<Buffer> a_, b_, c_;
};

double seconds_per_launch(Device& device, Workload& gemm) {
  gemm.launch(3);
  const auto start = device.make_marker(), stop = device.make_marker();
  device.record(*start);
  gemm.launch(10);
  device.record(*stop);
  device.synchronise();
  return device.seconds_between(*start, *stop) / 10;
}

void run(int n, int repeats, double seconds) {
  const auto device = open_device("cuda:0");
  const auto& info = device->info();
  VendorGemm gemm(*device, n);
  const double launch = seconds_per_launch(*device, gemm);
  auto sources = energy_sources({}, info.name, info.uuid, info.pci_address, info.is_cpu);
  auto meter = std::make_shared<EnergyMeter>(std::move(sources.sensors), std::move(sources.monitor),
                                             EnergyOptions{.budget = seconds});
  Observation observation;
  observation.add(meter);
  const double flops = 2.0 * n * n * n;
  fmt::print("cuBLAS SGEMM {0}x{0}x{0} on {1}, {2} s per measurement\n", n, info.name, seconds);
  fmt::print("{:>12} {:>22} {:>10} {:>10} {:>12}  {}\n", "time", "energy", "power", "GFLOP/s", "GFLOPs/W", "status");
  std::vector<double> times, energies;
  const std::vector<std::string> names;
  const Configuration values;
  for (int i = 0; i < repeats; ++i) {
    observation.register_configuration({.names = &names, .values = &values, .expected_launch_seconds = launch});
    observation.stream(*device, gemm, launch, 10 + 3 * seconds);
    Measurement m;
    observation.collect(m);
    const auto time = m.quantities["time"], energy = m.quantities["energy"], power = m.quantities["power"];
    times.push_back(time.value);
    energies.push_back(energy.value);
    fmt::print("{:9.4f} ms {:9.5f} ± {:7.5f} J {:8.1f} W {:10.0f} {:12.3f}  {}\n", time.value * 1e3, energy.value,
               1.96 * energy.standard_error, power.value, flops / time.value * 1e-9, flops / energy.value * 1e-9,
               to_string(m.status));
  }
  fmt::print("median: {:.4f} ms, {:.5f} J, {:.0f} GFLOP/s, {:.3f} GFLOPs/W\n", median(times) * 1e3, median(energies),
             flops / median(times) * 1e-9, flops / median(energies) * 1e-9);
}

}  // namespace
}  // namespace ergotune

int main(int argc, char** argv) {
  try {
    ergotune::run(argc > 1 ? std::atoi(argv[1]) : 2048, argc > 2 ? std::atoi(argv[2]) : 5,
                  argc > 3 ? std::atof(argv[3]) : 1.0);
  } catch (const std::exception& error) {
    fmt::print(stderr, "bench_vendor_gemm: {}\n", error.what());
    return 1;
  }
}
