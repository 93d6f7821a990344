#include "evaluate/live/worker_protocol.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <thread>

#include "ergotune/random.hpp"
#include "error_of.hpp"

namespace ergotune::protocol {
namespace {

Measurement rich_measurement() {
  Measurement m;
  m.status = Status::not_converged;
  m.message = "the words\nof it";
  m.quantities["time"] = {1.5e-3, 2e-6, 40, "device events", "", Provenance::measured};
  m.quantities["energy"] = {0.5, 0.01, 9, "counter regression", "nvml:0/energy", Provenance::simulated};
  m.metrics["gflops"] = 12.5;
  m.metric_errors["gflops"] = 0.1;
  m.warnings = {"power cap", ""};
  m.times = {1e-3, 2e-3};
  m.compile_seconds = 0.1;
  m.finished_at = 1.7e9;
  return m;
}

std::vector<Message> one_of_each() {
  Setup setup;
  setup.role = Role::compiler;
  setup.problem = std::string("{\"binary\":\"\0\"}", 14);
  setup.device_id = "opencl:0:0";
  setup.device.name = "device";
  setup.device.is_cpu = true;
  setup.device.properties["device.warp_size"] = 32;
  setup.device.properties["device.name"] = "x";
  setup.measure.precision = 0.02;
  setup.measure.reference_file = "/proc/1/fd/5";
  setup.energy = true;
  setup.sensors = {"nvml:0"};
  Ready ready;
  ready.compiler = "g++ 12";
  ready.has_reference = true;
  ready.notes = {"a", "b"};
  protocol::Run run;
  run.id = 7;
  run.configuration = {Value(true), Value(5), Value(0.5), Value("row")};
  run.binaries = {{std::string(100000, '\xfe'), "entry", "log"}, {"second", "other", ""}};
  run.options.reference_only = true;
  Ran ran;
  ran.id = 8;
  ran.measurement = rich_measurement();
  ran.healthy = false;
  return {setup,
          ready,
          Failed{true, "no device"},
          Compile{3, 1, {Value(1)}},
          Compiled{3, Status::compile_error, "words", {}, 0.5, true},
          run,
          ran,
          Stop{}};
}

TEST(Protocol, EveryMessageComesBackTheSame) {
  for (const Message& message : one_of_each()) {
    const std::string bytes = encode(message);
    FrameCutter cutter(kKind);
    cutter.append(bytes);
    const auto frame = cutter.next();
    ASSERT_TRUE(frame);
    const Message back = decode(*frame);
    EXPECT_EQ(back.index(), message.index());
    EXPECT_EQ(encode(back), bytes);
    EXPECT_EQ(cutter.held(), 0u);
    EXPECT_FALSE(cutter.next());
  }
}

TEST(Protocol, AnyCutIsWaitedForAndAnyPortionsWillDo) {
  std::string stream;
  for (const Message& message : one_of_each()) stream += encode(message);
  Random random(9);
  for (int run = 0; run < 20; ++run) {
    FrameCutter reader(kKind);
    std::size_t at = 0, seen = 0;
    while (at < stream.size()) {
      const std::size_t n = std::min<std::size_t>(1 + random.below(run < 10 ? 7000 : 200000), stream.size() - at);
      reader.append(std::string_view(stream).substr(at, n));
      at += n;
      while (reader.next()) ++seen;
    }
    EXPECT_EQ(seen, one_of_each().size());
  }
}

TEST(Protocol, TruncatedPayloadsAndTrailingBytesAreRefused) {
  for (const Message& message : one_of_each()) {
    const std::string frame = encode(message);
    const auto type = static_cast<std::uint8_t>(message.index() + 1);
    const std::string payload = frame.substr(kFrameHeader);
    const std::size_t step = std::max<std::size_t>(1, payload.size() / 500);
    for (std::size_t cut = 0; cut < payload.size(); cut += step) {
      EXPECT_THROW(decode({type, std::string_view(payload).substr(0, cut)}), FormatError);
    }
    EXPECT_THROW(decode({type, payload + "x"}), FormatError);
  }
}

/// True where reading does nothing worse than throw FormatError.
template <class F>
bool only_refuses(F&& read) {
  try {
    read();
  } catch (const FormatError&) {
  }
  return true;
}

RC_GTEST_PROP(Protocol, RandomBytesAreRefusedOrRead, (const std::vector<std::uint8_t>& bytes, std::uint8_t type)) {
  const std::string_view payload(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  RC_ASSERT(only_refuses([&] { decode({static_cast<std::uint8_t>(type % 9), payload}); }));
}

RC_GTEST_PROP(Protocol, DamagedFramesAreRefusedOrRead, (std::uint32_t seed)) {
  Random random(seed);
  const auto messages = one_of_each();
  std::string frame = encode(messages[random.below(messages.size())]);
  for (int i = 0; i < 3; ++i)
    frame[random.below(std::min<std::size_t>(frame.size(), 300))] = static_cast<char>(random());
  FrameCutter reader(kKind);
  reader.append(frame);
  RC_ASSERT(only_refuses([&] {
    while (const auto cut = reader.next()) decode(*cut);
  }));
}

RC_GTEST_PROP(Protocol, WhatIsReadIsWrittenBackTheSame, (std::uint32_t seed)) {
  Random random(seed);
  const auto messages = one_of_each();
  const Message& message = messages[random.below(messages.size())];
  const auto type = static_cast<std::uint8_t>(message.index() + 1);
  std::string payload = encode(message).substr(kFrameHeader);
  if (!payload.empty()) payload[random.below(std::min<std::size_t>(payload.size(), 300))] = static_cast<char>(random());
  RC_ASSERT(only_refuses([&] {
    const std::string frame = encode(decode({type, payload}));
    RC_ASSERT(encode(decode({type, std::string_view(frame).substr(kFrameHeader)})) == frame);
  }));
}

TEST(Protocol, AnotherVersionIsNamed) {
  std::string frame = encode(Stop{});
  frame[4] = 9;
  FrameCutter reader(kKind);
  reader.append(frame);
  EXPECT_THAT(error_of<FormatError>([&] { reader.next(); }), testing::HasSubstr("version 9"));
}

TEST(MessageStream, CarriesLargeMessagesBothWays) {
  const SocketPair sockets = make_socket_pair();
  Stream ours(kKind, sockets.ours, sockets.ours);
  std::thread other([descriptor = sockets.theirs] {
    Stream theirs(kKind, descriptor, descriptor);
    while (true) {
      const auto message = theirs.receive(-1);
      if (std::holds_alternative<Stop>(*message)) return;
      theirs.send(*message);
    }
  });
  protocol::Run run;
  run.binaries = {{std::string(20 << 20, 'x'), "entry", ""}};
  ours.send(run);
  const auto back = ours.receive(20);
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<protocol::Run>(*back).binaries.at(0).bytes.size(), run.binaries[0].bytes.size());
  EXPECT_FALSE(ours.receive(0));
  ours.send(Stop{});
  other.join();
  EXPECT_THROW(ours.receive(5), Disconnected);
}

}  // namespace
}  // namespace ergotune::protocol
