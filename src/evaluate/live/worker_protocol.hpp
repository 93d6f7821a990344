// The messages between a session and its workers. Every length is checked, so that a worker whose memory a kernel has
// overwritten cannot take the session down.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/messages/message_stream.hpp"
#include "device/device.hpp"
#include "ergotune/result.hpp"
#include "ergotune/space.hpp"
#include "measure/runner.hpp"

namespace ergotune::protocol {

inline constexpr FrameKind kKind{"ERGW", 4};

enum class Role : std::uint8_t { compiler, runner };

/// First message to a worker.
struct Setup {
  Role role = Role::runner;
  std::string problem;  ///< serialise(problem)
  std::string device_id;
  DeviceInfo device;         ///< compiler: the device it compiles for
  std::string cache_folder;  ///< who compiles: where compiled code is kept; empty: nowhere
  bool may_compile = false;  ///< runner: there is no processor for a compiler beside it
  MeasureOptions measure;
  bool energy = false;        ///< runner: measure energy too
  double energy_seconds = 0;  ///< runner: s of energy measurement per configuration; 0: the default
  std::vector<std::string> sensors;
};
/// The worker is ready for requests.
struct Ready {
  DeviceInfo device;
  std::string compiler;  ///< Compiler::identity(); runner: it compiles as well where this is not empty
  bool has_reference = false;
  std::vector<std::string> notes;
};
/// The worker cannot serve, at its start or any more: the user's mistake, the machine's fault (no room for
/// temporary files), or the tool's own failure. It is no configuration's result; the session ends with it.
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
  /// False: the device context is lost, the worker should be replaced.
  bool healthy = true;
  bool has_reference = false;
  double seconds = 0;  ///< in the worker, from the request's arrival to the answer
};
/// Ends a worker.
struct Stop {};

using Message = std::variant<Setup, Ready, Failed, Compile, Compiled, Run, Ran, Stop>;

/// The frame of a message. Throws FormatError when it would be too large.
std::string encode(const Message& message);
/// The message of a frame; throws FormatError when it is not exactly one message of that type.
Message decode(const Frame& frame, std::type_identity<Message> = {});

using Stream = MessageStream<Message>;

}  // namespace ergotune::protocol
