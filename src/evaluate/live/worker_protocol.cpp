#include "evaluate/live/worker_protocol.hpp"

#include "kernel/compile_cache.hpp"

namespace ergotune {

namespace protocol {

static constexpr Role last_value(Role) { return Role::runner; }

static auto fields(Setup& setup) {
  auto& [role, problem, device_id, device, cache_folder, may_compile, measure, energy, energy_seconds, sensors] = setup;
  return std::tie(role, problem, device_id, device, cache_folder, may_compile, measure, energy, energy_seconds,
                  sensors);
}
static auto fields(Ready& ready) {
  auto& [device, compiler, has_reference, notes] = ready;
  return std::tie(device, compiler, has_reference, notes);
}
static auto fields(Failed& failed) {
  auto& [user_error, message] = failed;
  return std::tie(user_error, message);
}
static auto fields(Compile& compile) {
  auto& [id, kernel, configuration] = compile;
  return std::tie(id, kernel, configuration);
}
static auto fields(Compiled& compiled) {
  auto& [id, status, message, binary, seconds, from_cache, mismatch] = compiled;
  return std::tie(id, status, message, binary, seconds, from_cache, mismatch);
}
static auto fields(Run& run) {
  auto& [id, configuration, binaries, options] = run;
  return std::tie(id, configuration, binaries, options);
}
static auto fields(Ran& ran) {
  auto& [id, measurement, healthy, has_reference, seconds] = ran;
  return std::tie(id, measurement, healthy, has_reference, seconds);
}
static auto fields(Stop&) { return std::tie(); }

std::string encode(const Message& message) { return encode_message(kKind, message); }

Message decode(const Frame& frame, std::type_identity<Message>) { return decode_message<Message>(kKind, frame); }

}  // namespace protocol
}  // namespace ergotune
