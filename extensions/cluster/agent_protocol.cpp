#include "cluster/agent_protocol.hpp"

#include "evaluate/live/worker_protocol.hpp"

namespace ergotune {

static auto fields(EvaluationRequest& request) {
  auto& [id, index, configuration, repeat, give_up_above, objective_quantity, resources_only, gpu, reference,
         energy_up_to, first, settle_seconds] = request;
  return std::tie(id, index, configuration, repeat, give_up_above, objective_quantity, resources_only, gpu, reference,
                  energy_up_to, first, settle_seconds);
}
namespace agents {

static auto fields(Hello& hello) {
  auto& [program, node] = hello;
  return std::tie(program, node);
}
static auto fields(InputFile& input) {
  auto& [place, hash, bytes] = input;
  return std::tie(place, hash, bytes);
}
static auto fields(Open& open) {
  auto& [problem, inputs, silence, energy, take_over, further_metrics] = open;
  return std::tie(problem, inputs, silence, energy, take_over, further_metrics);
}
static auto fields(List&) { return std::tie(); }
static auto fields(Accompany& accompany) { return std::tie(accompany.what); }
static auto fields(Ready&) { return std::tie(); }
static auto fields(Begin&) { return std::tie(); }
static auto fields(Listed& listed) { return std::tie(listed.document); }
static auto fields(Need& need) { return std::tie(need.hashes); }
static auto fields(Piece& piece) {
  auto& [hash, bytes, last] = piece;
  return std::tie(hash, bytes, last);
}
static auto fields(Opened& opened) {
  auto& [problem, devices, compiler, description, gpu_key, base_clock_mhz, notes, capacity, measured] = opened;
  return std::tie(problem, devices, compiler, description, gpu_key, base_clock_mhz, notes, capacity, measured);
}
static auto fields(Refused& refused) {
  auto& [user_error, message] = refused;
  return std::tie(user_error, message);
}
static auto fields(Note& note) { return std::tie(note.text); }
static auto fields(Ask& ask) { return std::tie(ask.request); }
static auto fields(Started& started) {
  auto& [id, device] = started;
  return std::tie(id, device);
}
static auto fields(Answer& answer) {
  auto& [id, measurement, gpu, disturbed] = answer;
  return std::tie(id, measurement, gpu, disturbed);
}
static auto fields(Establish& establish) { return std::tie(establish.candidates); }
static auto fields(Cancel& cancel) { return std::tie(cancel.number); }
static auto fields(Cancelled& cancelled) { return std::tie(cancelled.number); }
static auto fields(Heartbeat&) { return std::tie(); }
static auto fields(Leaving& leaving) { return std::tie(leaving.why); }
static auto fields(Stop&) { return std::tie(); }

std::string encode(const Message& message) { return encode_message(kKind, message); }

Message decode(const Frame& frame, std::type_identity<Message>) { return decode_message<Message>(kKind, frame); }

}  // namespace agents
}  // namespace ergotune
