// The messages between a session and the agent of a node, over one pipe. The pipe may be cut anywhere, and a login
// shell's greeting may come before the first frame.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/messages/message_stream.hpp"
#include "device/device.hpp"
#include "evaluate/evaluator.hpp"

namespace ergotune::agents {

inline constexpr FrameKind kKind{"ERGA", 1};
/// Bytes that a login shell may print before the agent is heard.
constexpr std::size_t kPreamble = std::size_t{1} << 18;
/// Bytes of a file that travel in one frame.
constexpr std::size_t kPiece = std::size_t{1} << 20;

/// Agent: it is there. `program`: its version; another one is refused, since its measurements would be others.
struct Hello {
  std::string program, node;
};
/// A file that the problem needs: where it lies in the agent's folder of inputs, and what is in it.
struct InputFile {
  std::string place, hash;
  std::uint64_t bytes = 0;
};
/// Session: what is tuned. Files in the problem are places in the agent's folder of inputs.
struct Open {
  std::string problem;  ///< serialise(problem); its settings are those of the session
  std::vector<InputFile> inputs;
  double silence = 30;  ///< s after which either side gives up on the other
  bool energy = false, take_over = false;
  std::vector<std::string> further_metrics;
};
/// Session: asks for the devices of the node, instead.
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
/// Agent: inputs that it has not, by hash.
struct Need {
  std::vector<std::string> hashes;
};
/// Session: a part of one of them, in order.
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
/// Agent: it cannot serve, or not any more.
struct Refused {
  bool user_error = false;
  std::string message;
};
/// Agent: a message for the user, while it opens.
struct Note {
  std::string text;
};
/// Session: to be measured.
struct Ask {
  EvaluationRequest request;
};
/// Agent: it runs next on one of the node's devices, by position.
struct Started {
  std::uint64_t id = 0, device = 0;
};
/// Agent: its result.
struct Answer {
  std::uint64_t id = 0;
  Measurement measurement;
  std::string gpu;
  bool disturbed = false;
};
/// Session: as LiveDevice::establish_reference().
struct Establish {
  std::vector<Configuration> candidates;
};
/// Session: nothing that was asked so far is wanted. Agent: nothing of it runs any more.
struct Cancel {
  std::uint64_t number = 0;
};
struct Cancelled {
  std::uint64_t number = 0;
};
/// Both: still there.
struct Beat {};
/// Agent: it has to go (the allocation ends); what it was asked and has not answered is handed back.
struct Leaving {
  std::string why;
};
/// Session: that was all.
struct Stop {};

using Message = std::variant<Hello, Open, List, Listed, Need, Piece, Opened, Refused, Note, Ask, Started, Answer,
                             Establish, Cancel, Cancelled, Beat, Leaving, Stop, Accompany, Ready, Begin>;

/// The frame of a message. Throws FormatError when it would be too large.
std::string encode(const Message& message);
/// The message of a frame; throws FormatError when it is not exactly one message of that type.
Message decode(const Frame& frame, std::type_identity<Message> = {});

using Stream = MessageStream<Message>;

}  // namespace ergotune::agents
