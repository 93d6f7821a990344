#include "evaluate/protocol.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <unistd.h>

#include <thread>

#include "ergotune/base/random.hpp"
#include "evaluate/channel.hpp"

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
  setup.memory_limit = 1ull << 40;
  Ready ready;
  ready.compiler = "g++ 12";
  ready.has_reference = true;
  ready.notes = {"a", "b"};
  protocol::Run run;
  run.id = 7;
  run.configuration = {Value(true), Value(5), Value(0.5), Value("row")};
  run.binary = {std::string(100000, '\xfe'), "entry", "log"};
  run.options.reference_only = true;
  Ran ran;
  ran.id = 8;
  ran.measurement = rich_measurement();
  ran.healthy = false;
  return {setup,
          ready,
          Failed{true, "no device"},
          Compile{3, {Value(1)}},
          Compiled{3, Status::compile_error, "words", {}, 0.5, true},
          run,
          ran,
          Stop{}};
}

TEST(Protocol, EveryMessageComesBackTheSame) {
  for (const Message& message : one_of_each()) {
    const std::string frame = encode(message);
    FrameReader reader;
    reader.append(frame);
    const auto back = reader.next();
    ASSERT_TRUE(back);
    EXPECT_EQ(back->index(), message.index());
    EXPECT_EQ(encode(*back), frame);
    EXPECT_EQ(reader.held(), 0u);
    EXPECT_FALSE(reader.next());
  }
}

TEST(Protocol, FieldsSurvive) {
  FrameReader reader;
  reader.append(encode(one_of_each()[6]));
  const auto message = reader.next();
  const Ran& ran = std::get<Ran>(*message);
  EXPECT_FALSE(ran.healthy);
  EXPECT_EQ(ran.measurement.status, Status::not_converged);
  EXPECT_EQ(ran.measurement.quantities.at("energy").sensor, "nvml:0/energy");
  EXPECT_EQ(ran.measurement.quantities.at("energy").provenance, Provenance::simulated);
  EXPECT_EQ(ran.measurement.times.size(), 2u);
  EXPECT_EQ(ran.measurement.warnings.size(), 2u);
}

TEST(Protocol, AnyCutIsWaitedForAndAnyPortionsWillDo) {
  std::string stream;
  for (const Message& message : one_of_each()) stream += encode(message);
  Random random(9);
  for (int run = 0; run < 20; ++run) {
    FrameReader reader;
    std::size_t at = 0, seen = 0;
    while (at < stream.size()) {
      const std::size_t n =
          std::min<std::size_t>(1 + random.below(run < 10 ? 7000 : 200000), stream.size() - at);
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
    const std::string payload = frame.substr(12);
    const std::size_t step = std::max<std::size_t>(1, payload.size() / 500);
    for (std::size_t cut = 0; cut < payload.size(); cut += step) {
      EXPECT_THROW(decode(type, std::string_view(payload).substr(0, cut)), ProtocolError);
    }
    EXPECT_THROW(decode(type, payload + "x"), ProtocolError);
  }
}

TEST(Protocol, GarbageNeverDoesMoreThanThrow) {
  rc::check("random bytes", [](const std::vector<std::uint8_t>& bytes, std::uint8_t type) {
    try {
      decode(static_cast<std::uint8_t>(type % 9),
             {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    } catch (const ProtocolError&) {
    }
  });
  rc::check("damaged frames", [](std::uint32_t seed) {
    Random random(seed);
    const auto messages = one_of_each();
    std::string frame = encode(messages[random.below(messages.size())]);
    for (int i = 0; i < 3; ++i)
      frame[random.below(std::min<std::size_t>(frame.size(), 300))] = static_cast<char>(random());
    FrameReader reader;
    reader.append(frame);
    try {
      while (reader.next()) {
      }
    } catch (const ProtocolError&) {
    }
  });
}

TEST(Protocol, AnotherVersionIsNamed) {
  std::string frame = encode(Stop{});
  frame[4] = 9;
  FrameReader reader;
  reader.append(frame);
  try {
    reader.next();
    FAIL();
  } catch (const ProtocolError& error) {
    EXPECT_STREQ(error.what(), "protocol version 9, but this program speaks 1");
  }
}

TEST(Channel, CarriesLargeMessagesBothWays) {
  const SocketPair sockets = make_socket_pair();
  Channel ours(sockets.ours);
  std::thread other([descriptor = sockets.theirs] {
    Channel theirs(descriptor);
    while (true) {
      const auto message = theirs.receive(-1);
      if (std::holds_alternative<Stop>(*message)) return;
      theirs.send(*message);
    }
  });
  protocol::Run run;
  run.binary.bytes = std::string(20 << 20, 'x');
  ours.send(run);
  const auto back = ours.receive(20);
  ASSERT_TRUE(back);
  EXPECT_EQ(std::get<protocol::Run>(*back).binary.bytes.size(), run.binary.bytes.size());
  EXPECT_FALSE(ours.receive(0));
  ours.send(Stop{});
  other.join();
  EXPECT_THROW(ours.receive(5), Disconnected);
}

}  // namespace
}  // namespace ergotune::protocol
