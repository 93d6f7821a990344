// The messages between a session and its workers. Every length is checked, so that a worker whose memory a kernel has
// overwritten cannot take the session down.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "base/messages/message_stream.hpp"
#include "base/messages/serialise.hpp"
#include "device/device.hpp"
#include "ergotune/result.hpp"
#include "ergotune/space.hpp"
#include "measure/runner.hpp"

namespace ergotune {

constexpr Status last_value(Status) { return Status::unsupported; }
constexpr Provenance last_value(Provenance) { return Provenance::modelled; }

inline auto fields(Value& value) {
  // Any content of a variant of these types is valid.
  return std::tie(const_cast<std::variant<bool, std::int64_t, double, std::string>&>(value.data()));
}
inline auto fields(DeviceInfo& info) {
  auto& [id, name, backend, uuid, pci_address, driver_version, is_cpu, properties] = info;
  return std::tie(id, name, backend, uuid, pci_address, driver_version, is_cpu, properties);
}
inline auto fields(MeasureSettings& settings) {
  auto& [precision, warm_up, min_repeats, max_repeats, max_seconds, cold_cache, verify, reference_seconds] = settings;
  return std::tie(precision, warm_up, min_repeats, max_repeats, max_seconds, cold_cache, verify, reference_seconds);
}
inline auto fields(MeasureOptions& options) {
  // A structured binding cannot name a base's members as well: the additional members of MeasureOptions are listed
  // here.
  return std::tuple_cat(fields(static_cast<MeasureSettings&>(options)),
                        std::tie(options.min_sample_seconds, options.stream_seconds_limit, options.reference_file));
}
inline auto fields(RunOptions& options) {
  auto& [give_up_above, objective_quantity, energy_up_to, settle_seconds, reference_only, resources_only, watched,
         requested_clock_mhz, clock_tolerance, set_at, state_only] = options;
  return std::tie(give_up_above, objective_quantity, energy_up_to, settle_seconds, reference_only, resources_only,
                  watched, requested_clock_mhz, clock_tolerance, set_at, state_only);
}
inline auto fields(Quantity& quantity) {
  auto& [value, standard_error, n, method, sensor, provenance, degrees] = quantity;
  return std::tie(value, standard_error, n, method, sensor, provenance, degrees);
}
inline auto fields(Measurement& measurement) {
  auto& [status, message, quantities, metrics, metric_errors, metric_degrees, warnings, times, compile_seconds,
         verify_seconds, measure_seconds, tuner_seconds, finished_at] = measurement;
  return std::tie(status, message, quantities, metrics, metric_errors, metric_degrees, warnings, times, compile_seconds,
                  verify_seconds, measure_seconds, tuner_seconds, finished_at);
}

}  // namespace ergotune

namespace ergotune::protocol {

inline constexpr FrameKind kKind{"ERGW", 4};

enum class Role : std::uint8_t { compiler, runner };

/// First message to a worker.
struct Setup {
  Role role = Role::runner;
  std::string problem;  ///< serialise(problem)
  std::string device_id;
  DeviceInfo device;         ///< compiler: the device it compiles for
  std::string cache_folder;  ///< for workers that compile: folder of the cache; empty: no cache
  bool may_compile = false;  ///< runner: no CPU is left for a separate compiler
  MeasureOptions measure;
  bool energy = false;        ///< runner: measure energy in addition
  double energy_seconds = 0;  ///< runner: s of energy measurement per configuration; 0: the default
  std::vector<std::string> sensors;
};
/// The worker is ready for requests.
struct Ready {
  DeviceInfo device;
  std::string compiler;  ///< Compiler::identity(); a runner with a non-empty identity compiles as well
  bool has_reference = false;
  std::vector<std::string> notes;
};
/// The worker cannot serve, at its start or later: a user's mistake, a fault of the machine (no room for temporary
/// files), or an internal failure. It is not attributed to a configuration and ends the session.
struct Failed {
  bool user_error = false;
  std::string message;
};
struct Compile {
  std::uint64_t id = 0;
  std::uint32_t kernel = 0;  ///< position in Problem::kernels
  Configuration configuration;
};
struct Compiled {
  std::uint64_t id = 0;
  Status status = Status::ok;
  std::string message;
  Binary binary;
  double seconds = 0;
  bool from_cache = false;
  std::int64_t mismatch = 0;  ///< CompileOutcome::mismatch
};
struct Run {
  std::uint64_t id = 0;
  Configuration configuration;
  std::vector<Binary> binaries;  ///< one for each of Problem::kernels
  RunOptions options;
};
struct Ran {
  std::uint64_t id = 0;
  Measurement measurement;
  /// False: the device context is lost and the worker should be replaced.
  bool healthy = true;
  bool has_reference = false;
  double seconds = 0;  ///< in the worker, from the arrival of the request to the answer
};
/// Ends the worker.
struct Stop {};

using Message = std::variant<Setup, Ready, Failed, Compile, Compiled, Run, Ran, Stop>;

/// Returns the frame of a message. Throws FormatError if it would be too large.
std::string encode(const Message& message);
/// Returns the message in a frame. Throws FormatError unless it is exactly one message of that type.
Message decode(const Frame& frame, std::type_identity<Message> = {});

using Stream = MessageStream<Message>;

}  // namespace ergotune::protocol
