// The messages between a session and a node agent, over one pipe. The pipe may close at any point, and a login shell's
// greeting may precede the first frame.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/messages/message_stream.hpp"
#include "device/device.hpp"
#include "evaluate/evaluator.hpp"

namespace ergotune::agents {

inline constexpr FrameKind kKind{"ERGA", 1};
/// Largest number of bytes that a login shell may print before the agent's first frame.
constexpr std::size_t kPreamble = std::size_t{1} << 18;
/// Largest number of bytes of a file in one frame.
constexpr std::size_t kPiece = std::size_t{1} << 20;

/// Agent: it has started. `program`: its version; the session rejects another version, whose measurements might differ.
struct Hello {
  std::string program, node;
};
/// A file that the problem needs: its path in the agent's folder of inputs, and the hash of its content.
struct InputFile {
  std::string place, hash;
  std::uint64_t bytes = 0;
};
/// Session: what to open. Files in the problem are paths in the agent's folder of inputs.
struct Open {
  std::string problem;  ///< serialise(problem), with the session's settings
  std::vector<InputFile> inputs;
  double silence = 30;  ///< s after which either side considers the other lost
  bool energy = false, take_over = false;
  std::vector<std::string> further_metrics;
};
/// Session: requests the node's devices; sent instead of Open.
struct List {};
/// Session: what shall accompany a program that runs on the node (Companion), instead; a JSON document.
struct Accompany {
  std::string what;
};
/// Agent: it is ready.
struct Ready {};
/// Session: the program begins. Stop ends it.
struct Begin {};
/// Agent: the answer to List, as `ergotune devices --json` prints it, or what a companion found.
struct Listed {
  std::string document;
};
/// Agent: hashes of the inputs that it lacks.
struct Need {
  std::vector<std::string> hashes;
};
/// Session: the next part of a file.
struct Piece {
  std::string hash, bytes;
  bool last = false;
};
/// Agent: ready to measure.
struct Opened {
  std::string problem;  ///< with execution parameters resolved
  std::vector<DeviceInfo> devices;
  std::string compiler, description, gpu_key;
  std::optional<double> base_clock_mhz;
  std::vector<std::string> notes;
  std::uint64_t capacity = 1;
  bool measured = true;  ///< not simulated
};
/// Agent: it cannot serve the session, or can no longer serve it.
struct Refused {
  bool user_error = false;
  std::string message;
};
/// Agent: a message for the user while the problem is opened.
struct Note {
  std::string text;
};
/// Session: a configuration to measure.
struct Ask {
  EvaluationRequest request;
};
/// Agent: the request runs next on the device at this position of the node's list.
struct Started {
  std::uint64_t id = 0, device = 0;
};
/// Agent: the result of a request.
struct Answer {
  std::uint64_t id = 0;
  Measurement measurement;
  std::string gpu;
  bool disturbed = false;
};
/// Session: candidates for LiveDevice::establish_reference().
struct Establish {
  std::vector<Configuration> candidates;
};
/// Session: all requests so far are cancelled. The agent answers Cancelled when none of them runs any more.
struct Cancel {
  std::uint64_t number = 0;
};
struct Cancelled {
  std::uint64_t number = 0;
};
/// Both: heartbeat.
struct Heartbeat {};
/// Agent: it has to end (for example with its allocation); unanswered requests are handed back.
struct Leaving {
  std::string why;
};
/// Session: it has ended.
struct Stop {};

using Message = std::variant<Hello, Open, List, Listed, Need, Piece, Opened, Refused, Note, Ask, Started, Answer,
                             Establish, Cancel, Cancelled, Heartbeat, Leaving, Stop, Accompany, Ready, Begin>;

/// Returns the frame of a message. Throws FormatError if it would be too large.
std::string encode(const Message& message);
/// Returns the message in a frame. Throws FormatError unless it is exactly one message of that type.
Message decode(const Frame& frame, std::type_identity<Message> = {});

using Stream = MessageStream<Message>;

}  // namespace ergotune::agents
