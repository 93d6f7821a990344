// The fuzz targets without a fuzzer, in every build: each takes its corpus, seeds made here, and a thousand mutations
// of both, drawn with a fixed seed. What trips a target ends this process, and ctest says which.
// ERGOTUNE_FUZZ_MUTATIONS: how many (1000); ERGOTUNE_FUZZ_SECONDS: then more of them for so long (.ci/run);
// ERGOTUNE_FUZZ_SEEDS names a folder that gets the seeds made here, for the fuzzer (scripts/deep-check).
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "base/clock.hpp"
#include "cluster/agent_protocol.hpp"
#include "ergotune/random.hpp"
#include "evaluate/live/worker_protocol.hpp"
#include "kernel/wisdom.hpp"
#include "power/helper/helper_protocol.hpp"

#define TARGET(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size);
#include "targets.inc"
#undef TARGET

namespace ergotune {
namespace {

namespace fs = std::filesystem;

struct Target {
  const char* name;
  int (*run)(const std::uint8_t*, std::size_t);
};
void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

constexpr Target kTargets[] = {
#define TARGET(name) {#name, fuzz_##name},
#include "targets.inc"
#undef TARGET
};

std::string contents(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> worker_frames() {
  using namespace protocol;
  Ran ran;
  ran.measurement.quantities["time"] = {1e-3, 1e-5, 20, "events", "cuda", Provenance::measured};
  std::vector<std::string> frames;
  for (const Message& message : std::vector<Message>{Setup{}, Ready{}, Failed{true, "no room"},
                                                     Compile{1, 0, {Value(std::int64_t{3}), Value("x")}},
                                                     Compiled{1, Status::ok, "", {"code", "f", "log"}, 0.5, false},
                                                     Run{2, {Value(1.5)}, {{"code", "f", ""}}, {}}, ran, Stop{}}) {
    frames.push_back(encode(message));
    frames.push_back(static_cast<char>(message.index()) + frames.back().substr(12));  // as the payload of its type
  }
  return frames;
}

std::vector<std::string> agent_frames() {
  using namespace agents;
  Answer answer{7, {}, "GPU-1"};
  answer.measurement.quantities["time"] = {1e-3, 1e-5, 20, "events", "cuda", Provenance::measured};
  Opened opened;
  opened.devices.emplace_back().name = "A";
  EvaluationRequest request{3, 4, {Value(std::int64_t{3}), Value("x")}};
  std::vector<std::string> frames;
  for (const agents::Message& message : std::vector<agents::Message>{
           Hello{"v", "n1"}, Open{"{}", {{"files/x", "00", 2}}, 30, false, false, {"metric"}}, List{}, Listed{"{}"},
           Need{{"00"}}, Piece{"00", "ab", true}, opened, Refused{true, "no"}, Note{"words"}, Ask{request},
           Started{3, 1}, answer, Establish{{{Value(1.5)}}}, Cancel{1}, Cancelled{1}, Heartbeat{}, Leaving{"SIGTERM"},
           Stop{}}) {
    frames.push_back(encode(message));
    frames.push_back("Welcome\n" + frames.back() + frames.back());  // behind a login shell
    frames.push_back(static_cast<char>(message.index() + 1) + encode(message).substr(kFrameHeader));
  }
  return frames;
}

/// Two clients at work: a byte that says who (with nonce and sequence made right) and when, a length, a packet.
std::vector<std::string> helper_packets() {
  using namespace helper;
  std::vector<std::string> packets;
  std::string session;
  for (const Request& request : std::vector<Request>{
           ListRequest{}, RangeRequest{"tegra"}, CoreClocksRequest{"tegra", 1000},
           AcquireRequest{"tegra", "me", 5, false}, SetRequest{"tegra", ControlQuantity::core_clock_mhz, 1100},
           SetRequest{"tegra", ControlQuantity::core_clock_mhz, 1100.4}, RenewRequest{"tegra"},
           ReleaseRequest{"tegra"}}) {
    packets.push_back(encode(0x1000, 1, request));
    session += std::string("\x04") + static_cast<char>(packets.back().size()) + packets.back();
  }
  packets.push_back(encode(1, 2, Answer(DoneAnswer{})));
  packets.push_back(session);
  return packets;
}

/// What a corpus in files cannot keep up with: messages as this build writes them.
std::vector<std::string> made(const std::string& target) {
  if (target == "protocol") return worker_frames();
  if (target == "agent_frames") return agent_frames();
  if (target == "helper_protocol") return helper_packets();
  if (target == "wisdom") {
    WisdomRecord record;
    record.configuration = {{"block", Value(std::int64_t{128})}, {"layout", Value("row")}};
    record.device = {.name = "A", .backend = "opencl"};
    record.problem_size = {1024};
    return {to_text({"kernel", {record, record}, {}})};
  }
  return {};
}

std::vector<std::string> inputs(const std::string& target) {
  std::vector<std::string> list{""};
  std::map<fs::path, std::string> files;  // in order of their names, whatever the file system says
  std::vector<fs::path> folders{fs::path(ERGOTUNE_SOURCE_DIR "/fuzz/corpus") / target};
  if (target == "problem") folders.push_back(ERGOTUNE_TEST_DATA "/malformed");
  for (const auto& folder : folders) {
    if (!fs::exists(folder)) continue;
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().extension() != ".txt") files[entry.path()] = contents(entry.path());
  }
  for (auto& [file, text] : files) list.push_back(std::move(text));
  for (std::string& text : made(target)) list.push_back(std::move(text));
  if (list.size() == 1)  // a target whose corpus is still to come
    for (const char* text :
         {"{\"a\": [1, \"x\", null]}", "GET /a?b=c HTTP/1.1\r\nHost: localhost\r\n\r\n", "a = 1\n[b]\nc = [\"d\"]\n"})
      list.emplace_back(text);
  return list;
}

std::string mutated(std::string text, const std::vector<std::string>& others, Random& random) {
  for (int changes = 1 + static_cast<int>(random.below(4)); changes > 0; --changes) {
    const std::size_t at = random.below(text.size() + 1);
    switch (random.below(6)) {
      case 0:
        text = text.substr(0, at);
        break;
      case 1:
        text.insert(at, 1, static_cast<char>(random.below(256)));
        break;
      case 2:
        if (at < text.size()) text[at] = static_cast<char>(random.below(256));
        break;
      case 3:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random.below(8)));
        break;
      case 4:
        text.erase(at, 1 + random.below(16));
        break;
      default: {  // a piece of another input
        const std::string& other = others[random.below(others.size())];
        const std::size_t from = random.below(other.size() + 1);
        text.insert(at, other.substr(from, 1 + random.below(64)));
      }
    }
  }
  return text;
}

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

class Fuzz : public ::testing::TestWithParam<Target> {};

TEST_P(Fuzz, TakesItsCorpusAndMutationsOfIt) {
  const Target& target = GetParam();
  const std::vector<std::string> corpus = inputs(target.name);
  const auto run = [&](const std::string& input) {
    EXPECT_EQ(target.run(reinterpret_cast<const std::uint8_t*>(input.data()), input.size()), 0);
  };
  for (const std::string& input : corpus) run(input);
  if (const char* folder = std::getenv("ERGOTUNE_FUZZ_SEEDS")) {
    std::size_t number = 0;
    for (const std::string& input : made(target.name))
      std::ofstream(fs::path(folder) / (std::string(target.name) + std::to_string(number++)), std::ios::binary)
          << input;
    return;
  }
  Random random(20261122);
  const double until = host_seconds() + number_from("ERGOTUNE_FUZZ_SECONDS", 0);
  int runs = 0;
  for (const int wanted = number_from("ERGOTUNE_FUZZ_MUTATIONS", 1000); runs < wanted || host_seconds() < until; ++runs)
    run(mutated(corpus[random.below(corpus.size())], corpus, random));
  RecordProperty("mutations", runs);
}

INSTANTIATE_TEST_SUITE_P(Targets, Fuzz, ::testing::ValuesIn(kTargets),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ergotune
