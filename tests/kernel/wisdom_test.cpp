#include "kernel/wisdom.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <set>
#include <thread>

#include "base/files.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "kernel/wisdom_key.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const WisdomDevice kH100{"H100", "cuda", "nvidia", "sm_90", {}, {}, 80'000'000'000, 132};
const WisdomDevice kH200{"H200", "cuda", "nvidia", "sm_90", {}, {}, 141'000'000'000, 132};
const WisdomDevice kA100{"A100", "cuda", "nvidia", "sm_80", {}, {}, 40'000'000'000, 108};
const WisdomDevice kMi300{"MI300X", "hip", "amd", "gfx942", {}, {}, 192'000'000'000, 304};

WisdomRecord record(const WisdomDevice& device, std::vector<std::int64_t> size, int block, double score = 1) {
  WisdomRecord r;
  r.configuration = {{"block", block}};
  r.problem_size = std::move(size);
  r.score = score;
  r.device = device;
  r.source_hash = "s";
  return r;
}

int block_of(const WisdomChoice& choice) {
  return choice.record ? static_cast<int>(choice.record->configuration.at("block").as_integer()) : 0;
}

TEST(WisdomSelection, PrefersTheDeviceThenItsArchitectureThenItsVendor) {
  std::vector<WisdomRecord> records{record(kMi300, {1024}, 1), record(kA100, {1024}, 2), record(kH200, {1024}, 3),
                                    record(kH100, {4096}, 4), record(kH100, {1024}, 5)};
  const WisdomRequest request{.device = kH100, .problem_size = {1024}};
  const WisdomMatch order[] = {WisdomMatch::exact, WisdomMatch::near_size, WisdomMatch::architecture,
                               WisdomMatch::vendor, WisdomMatch::none};
  for (const WisdomMatch expected : order) {
    const WisdomChoice choice = select_wisdom(records, request);
    EXPECT_EQ(choice.match, expected) << choice.reason;
    EXPECT_EQ(block_of(choice), expected == WisdomMatch::none ? 0 : static_cast<int>(records.size())) << choice.reason;
    if (records.size() > 1) records.pop_back();
  }
  EXPECT_THAT(select_wisdom(records, request).reason,
              HasSubstr("none of 1 record is of this device (H100), its architecture (sm_90)"));
  EXPECT_THAT(select_wisdom({}, request).reason, HasSubstr("no wisdom of this kernel"));
  EXPECT_THAT(select_wisdom({record(kH100, {1024}, 1, 0.5)}, request).reason, HasSubstr("0.5 s"));
}

// What the volume of a size hides: 1 x 1000000 is not like 1000 x 1000.
TEST(WisdomSelection, SizesAreComparedDimensionByDimension) {
  const std::vector<WisdomRecord> records{record(kH100, {1 << 6, 1 << 14}, 1), record(kH100, {900, 1200}, 2)};
  EXPECT_EQ(block_of(select_wisdom(records, {.device = kH100, .problem_size = {1024, 1024}})), 2);
  EXPECT_DOUBLE_EQ(size_distance({4, 8}, {1, 4}), std::sqrt(5.0));
  EXPECT_EQ(size_distance({100}, {100, 1, 1}), 0) << "what the request leaves open counts for nothing";
  EXPECT_EQ(size_distance({100, 1, 1}, {100}), 0);
}

TEST(WisdomSelection, ASizeTooFarIsNotUsedInSilence) {
  const std::vector<WisdomRecord> records{record(kH100, {1 << 20}, 1)};
  const WisdomChoice choice = select_wisdom(records, {.device = kH100, .problem_size = {1 << 11}});
  EXPECT_FALSE(choice.record);
  EXPECT_THAT(choice.reason, HasSubstr("9.0 doublings from 2048"));
}

TEST(WisdomSelection, StaleAndRefusedRecordsAreNeverUsedAndAreCounted) {
  std::vector<WisdomRecord> records{record(kH100, {64}, 1), record(kH100, {64}, 2), record(kA100, {64}, 3)};
  records[0].source_hash = "older";
  WisdomRequest request{.device = kH100, .problem_size = {64}, .source_hash = "s"};
  request.refuse = [](const WisdomRecord& r) {
    return r.configuration.at("block") == Value(2) ? "block has no value 2" : "";
  };
  WisdomChoice choice = select_wisdom(records, request);
  EXPECT_EQ(block_of(choice), 3);
  EXPECT_EQ(choice.stale, 1u);
  EXPECT_THAT(choice.reason, HasSubstr("1 left out as stale"));
  records.pop_back();
  choice = select_wisdom(records, request);
  EXPECT_FALSE(choice.record);
  EXPECT_THAT(choice.reason, HasSubstr("1 record is stale: the source has changed"));
  EXPECT_THAT(choice.reason, HasSubstr("block has no value 2"));
}

TEST(WisdomSelection, ASimulatedRecordIsForTheSimulatedDeviceAlone) {
  std::vector<WisdomRecord> records{record(kH100, {64}, 1)};
  records[0].provenance = "simulated";
  EXPECT_EQ(block_of(select_wisdom(records, {.device = kH100, .problem_size = {64}})), 1);
  EXPECT_EQ(block_of(select_wisdom(records, {.device = kH100, .problem_size = {128}})), 1);
  const WisdomChoice other = select_wisdom(records, {.device = kA100, .problem_size = {64}});
  EXPECT_FALSE(other.record) << "of its vendor, but of no use to a real device";
  EXPECT_THAT(other.reason, HasSubstr("simulated"));
  records[0].device.name = "simulated " + kH100.name;
  EXPECT_EQ(block_of(select_wisdom(records, {.device = records[0].device, .problem_size = {64}})), 1);
  const WisdomChoice choice = select_wisdom(records, {.device = kH100, .problem_size = {64}});
  EXPECT_EQ(choice.record, nullptr) << choice.reason;
  EXPECT_EQ(choice.simulated, 1u);
}

TEST(WisdomSelection, ASizeThatIsTooFarIsPrintedAsTooFar) {
  const WisdomChoice choice = select_wisdom({record(kH100, {64}, 1)}, {.device = kH100, .problem_size = {64 * 257}});
  EXPECT_FALSE(choice.record);
  EXPECT_THAT(choice.reason, Not(HasSubstr("8.0 doublings"))) << "8 are not too many";
}

TEST(WisdomSelection, TheObjectiveRequestedForAndItsDirectionDecide) {
  std::vector<WisdomRecord> records{record(kH100, {64}, 1, 3), record(kH100, {64}, 2, 2), record(kH100, {64}, 3, 100),
                                    record(kH100, {64}, 4, 200)};
  for (const int i : {2, 3}) {
    records[i].objective = "gflops";
    records[i].maximise = true;
    records[i].tuned_at = "2026-01-01T00:00:00Z";
  }
  EXPECT_EQ(block_of(select_wisdom(records, {.device = kH100, .problem_size = {64}, .objective = "time"})), 2);
  EXPECT_EQ(block_of(select_wisdom(records, {.device = kH100, .problem_size = {64}, .objective = "gflops"})), 4);
  EXPECT_EQ(block_of(select_wisdom(records, {.device = kH100, .problem_size = {64}, .objective = "max gflops"})), 4);
  EXPECT_EQ(block_of(select_wisdom(records, {.device = kH100, .problem_size = {64}})), 4)
      << "the newest says what is wanted";
  records[1].provenance = "simulated";
  EXPECT_EQ(block_of(select_wisdom(records, {.device = kH100, .problem_size = {64}, .objective = "time"})), 1)
      << "measured first";
}

rc::Gen<WisdomRecord> any_record() {
  return rc::gen::apply(
      [](int device, std::vector<std::int64_t> size, int block, int score, bool maximise, int day, int hash) {
        const WisdomDevice* devices[] = {&kH100, &kH200, &kA100, &kMi300};
        WisdomRecord r = record(*devices[device], std::move(size), block, score);
        r.maximise = maximise;
        r.objective = maximise ? "gflops" : "time";
        r.tuned_at = "2026-01-0" + std::to_string(day);
        r.source_hash = hash == 0 ? "older" : "s";
        return r;
      },
      rc::gen::inRange(0, 4),
      rc::gen::container<std::vector<std::int64_t>>(2, rc::gen::inRange<std::int64_t>(-1, 5000)),
      rc::gen::inRange(1, 9), rc::gen::inRange(1, 4), rc::gen::arbitrary<bool>(), rc::gen::inRange(1, 4),
      rc::gen::inRange(0, 3));
}

TEST(WisdomSelection, IsTheSameWhateverTheOrderAndNeverWorseThanAnyOther) {
  EXPECT_TRUE(rc::check([] {
    auto records = *rc::gen::container<std::vector<WisdomRecord>>(any_record());
    const auto size = *rc::gen::container<std::vector<std::int64_t>>(2, rc::gen::inRange<std::int64_t>(1, 5000));
    const WisdomRequest request{.device = kH100, .problem_size = size, .source_hash = "s"};
    const WisdomChoice choice = select_wisdom(records, request);
    std::vector<WisdomRecord> shuffled = records;
    std::ranges::reverse(shuffled);
    std::rotate(shuffled.begin(), shuffled.begin() + static_cast<std::ptrdiff_t>(shuffled.size() / 2), shuffled.end());
    const WisdomChoice again = select_wisdom(shuffled, request);
    RC_ASSERT(choice.reason == again.reason);
    RC_ASSERT((choice.record == nullptr) == (again.record == nullptr));
    if (!choice.record) {
      for (const WisdomRecord& r : records)
        RC_ASSERT(r.source_hash == "older" || r.device.vendor != "nvidia" ||
                  size_distance(size, r.problem_size) > kMaxSizeDistance);
      return;
    }
    RC_ASSERT(*choice.record == *again.record);
    RC_ASSERT(choice.record->source_hash == "s");
    RC_ASSERT(choice.distance <= request.reach);
    for (const WisdomRecord& r : records) {
      const double distance = size_distance(size, r.problem_size);
      if (r.source_hash != "s" || distance > request.reach) continue;
      if (r.device == kH100) {
        RC_ASSERT(choice.record->device == kH100);
        RC_ASSERT(choice.distance <= distance);
      }
      if (r.device == choice.record->device && distance == choice.distance && r.objective == choice.record->objective)
        RC_ASSERT((r.maximise ? *r.score <= *choice.record->score : *r.score >= *choice.record->score));
    }
  }));
}

// Adding what is not requested (another vendor's, stale ones) changes nothing.
TEST(WisdomSelection, WhatIsNotMeantChangesNothing) {
  EXPECT_TRUE(rc::check([] {
    auto records = *rc::gen::container<std::vector<WisdomRecord>>(any_record());
    const WisdomRequest request{.device = kH100, .problem_size = {512, 512}, .source_hash = "s"};
    const WisdomChoice before = select_wisdom(records, request);
    const std::optional<WisdomRecord> chosen = before.record ? std::optional(*before.record) : std::nullopt;
    records.push_back(record(kMi300, {512, 512}, 1, 0.001));
    records.push_back(record(kH100, {512, 512}, 1, 0.001));
    records.back().source_hash = "older";
    const WisdomChoice after = select_wisdom(records, request);
    RC_ASSERT((after.record ? std::optional(*after.record) : std::nullopt) == chosen);
  }));
}

TEST(WisdomText, WhatIsWrittenIsRead) {
  EXPECT_TRUE(rc::check([](const std::string& text, const std::string& name, double value, std::int64_t n, bool flag) {
    WisdomRecord r = record(kH100, {n, 3}, 64, std::isfinite(value) ? value : 1);
    r.configuration["text"] = std::string("a \"quoted\"\n line");
    r.configuration["flag"] = flag;
    r.configuration["real"] = std::isfinite(value) ? value : 0.5;
    r.execution["core_clock_mhz"] = 1410;
    r.size_names = {"n", "m"};
    r.quantities["energy"] = {2.5, 0.25, 7};
    r.confirmation_repeats = 9;
    r.tuned_at = "2026-11-22T08:00:00Z";
    const Wisdom wisdom{"kernel", {r, record(kA100, {}, 1)}, {}};
    const Wisdom read = parse_wisdom(to_text(wisdom), "x");
    RC_ASSERT(read.kernel == "kernel");
    RC_ASSERT(read.warnings.empty());
    RC_ASSERT(read.records == wisdom.records);
    (void)parse_wisdom(text + "\n" + name + "\n", "anything");  // never throws
  }));
}

TEST(WisdomText, ADamagedLineIsLeftOutWithItsPlace) {
  const std::string good = to_json_line(record(kH100, {64}, 1));
  const std::string text = "{\"ergotune_wisdom\":2,\"kernel\":\"k\"}\n" + good + "\n\n# a word\n" + good.substr(0, 40) +
                           "\n{\"device\": 3}\n" + good + "\n" + good;
  const Wisdom wisdom = parse_wisdom(text, "k.wisdom");
  EXPECT_EQ(wisdom.records.size(), 2u) << "the last line has no end: it is being written";
  ASSERT_EQ(wisdom.warnings.size(), 2u);
  EXPECT_THAT(wisdom.warnings[0], HasSubstr("k.wisdom:5:"));
  const Wisdom headless = parse_wisdom("{\"ergotu\n" + good + "\n", "k.wisdom");
  EXPECT_EQ(headless.records.size(), 1u);
  EXPECT_EQ(headless.warnings.size(), 1u);
  const Wisdom newer = parse_wisdom("{\"ergotune_wisdom\":99,\"kernel\":\"k\"}\n" + good + "\n", "k.wisdom");
  EXPECT_THAT(newer.records, IsEmpty());
  EXPECT_THAT(newer.warnings.at(0), HasSubstr("version 99"));
}

// The format as Kernel Launcher's documentation and its tests show it.
TEST(WisdomText, SimulatedRecordsStaySoInKernelLaunchersFormat) {
  std::vector<WisdomRecord> records{record(kH100, {64}, 1), record(kH100, {64}, 2), record(kH100, {64}, 3)};
  records[1].provenance = "simulated";
  records[2].provenance = "modelled";
  std::vector<std::string> notes;
  const std::string text = to_kernel_launcher({"k", records, {}}, notes);
  EXPECT_EQ(notes.size(), 1u);
  const Wisdom written = parse_wisdom(text, "k.wisdom");
  ASSERT_EQ(written.records.size(), 1u);
  EXPECT_EQ(written.records[0].configuration, records[0].configuration);
  EXPECT_EQ(to_kernel_launcher({"k", {records[1]}, {}}, notes), "");
  std::string other = text;
  other.replace(other.find("H100"), 4, "simulated H100");
  EXPECT_EQ(parse_wisdom(other, "k.wisdom").records.at(0).provenance, "simulated");
}

TEST(WisdomText, KernelLaunchersFilesAreReadAndWritten) {
  const std::string text =
      "{\"version\":  \"1.0\", \"objective\":  \"time\", \"tunable_parameters\": [\"tile\", \"fast\"], \"key\": "
      "\"blur\"}\n"
      "{\"config\":  [2, true], \"problem_size\":  [100, 200], \"environment\": {\"device_name\":  \"H100\"}, "
      "\"time\":  0.5}\n"
      "# comment\n"
      "{\"config\":  [4, false], \"problem_size\":  [100, 200], \"environment\": {\"device_name\":  \"H100\"}, "
      "\"time\":  0.25}\n"
      "{\"config\":  [4], \"problem_size\":  [100], \"environment\": {}, \"time\":  0.25}\n";
  const Wisdom wisdom = parse_wisdom(text, "blur.wisdom");
  EXPECT_EQ(wisdom.kernel, "blur");
  ASSERT_EQ(wisdom.records.size(), 2u);
  EXPECT_EQ(wisdom.warnings.size(), 1u);
  EXPECT_DOUBLE_EQ(*wisdom.records[0].score, 0.5e-3);
  const WisdomChoice choice =
      select_wisdom(wisdom.records, {.device = kH100, .problem_size = {100, 200}, .source_hash = "whatever"});
  ASSERT_TRUE(choice.record);
  EXPECT_EQ(choice.record->configuration.at("tile"), Value(4));
  std::vector<std::string> notes;
  const Wisdom back = parse_wisdom(to_kernel_launcher(wisdom, notes), "back");
  EXPECT_THAT(notes, IsEmpty());
  EXPECT_EQ(back.warnings, std::vector<std::string>());
  ASSERT_EQ(back.records.size(), 2u);
  EXPECT_EQ(back.records[0].configuration, wisdom.records[1].configuration) << "the best first";
  EXPECT_DOUBLE_EQ(*back.records[0].score, 0.25e-3);
}

TEST(WisdomFile, ThreadsAddWhileOthersReadAndNothingIsLost) {
  const TemporaryFolder folder;
  constexpr int kThreads = 8, kEach = 12;
  std::atomic<bool> done{false};
  std::atomic<int> broken{0};
  std::thread reader([&] {
    while (!done)
      if (const auto read = read_wisdom(wisdom_file(folder.path(), "k")); read && !read->warnings.empty()) ++broken;
  });
  std::vector<std::thread> writers;
  for (int t = 0; t < kThreads; ++t)
    writers.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) add_to_wisdom(folder.path(), "k", {record(kH100, {t + 1, i + 1}, 1)});
    });
  for (auto& writer : writers) writer.join();
  done = true;
  reader.join();
  EXPECT_EQ(broken, 0);
  EXPECT_EQ(read_wisdom(wisdom_file(folder.path(), "k"))->records.size(), std::size_t{kThreads * kEach});
  EXPECT_EQ(add_to_wisdom(folder.path(), "k", {record(kH100, {1, 1}, 1)}), 0u) << "what it has is not added again";
}

TEST(WisdomFile, ALaterRecordOfTheSameDeviceSizeAndConfigurationReplacesTheEarlier) {
  const TemporaryFolder folder;
  const auto add = [&](const WisdomRecord& one) { return add_to_wisdom(folder.path(), "k", {one}); };
  const auto at = [](WisdomRecord one, const char* time) {
    one.tuned_at = time;
    return one;
  };
  add(at(record(kH100, {64}, 1), "2026-11-22T08:00:00Z"));
  WisdomRecord later = at(record(kH100, {64}, 1, 0.9), "2026-11-23T08:00:00Z");
  later.device.memory_bytes -= 4096;  // some drivers report another size each time
  EXPECT_EQ(add(later), 1u);
  EXPECT_EQ(add(at(record(kH100, {64}, 1, 0.8), "2026-11-21T08:00:00Z")), 0u) << "an older one";
  EXPECT_EQ(read_wisdom(wisdom_file(folder.path(), "k"))->records, std::vector{later});
  EXPECT_EQ(add(record(kH100, {64}, 2)), 1u) << "another configuration";
  EXPECT_EQ(add(record(kA100, {64}, 1)), 1u) << "another device";
  EXPECT_EQ(read_wisdom(wisdom_file(folder.path(), "k"))->records.size(), 3u);
}

TEST(WisdomFile, WhatIsDamagedStaysAndWhatIsNotOursIsLeftAlone) {
  const TemporaryFolder folder;
  const auto file = wisdom_file(folder.path(), "a kernel<float>");
  add_to_wisdom(folder.path(), "a/b", {record(kH100, {64}, 1)});
  EXPECT_NE(wisdom_file(folder.path(), "a_b"), wisdom_file(folder.path(), "a/b")) << "B16: two kernels, two files";
  EXPECT_EQ(file.filename(), "a_kernel_float_.wisdom");
  const std::string good = to_json_line(record(kH100, {64}, 1));
  write_file(file, "{\"ergotune_wisdom\":2,\"kernel\":\"a kernel<float>\"}\n" + good + "\n" + good.substr(0, 50));
  EXPECT_EQ(add_to_wisdom(folder.path(), "a kernel<float>", {record(kA100, {64}, 2)}), 1u);
  const auto read = read_wisdom(file);
  EXPECT_EQ(read->records.size(), 2u);
  EXPECT_EQ(read->warnings.size(), 1u);
  write_file(
      file,
      "{\"version\":\"1.0\",\"objective\":\"time\",\"tunable_parameters\":[\"block\"],\"key\":\"a kernel<float>\"}\n");
  EXPECT_THROW(add_to_wisdom(folder.path(), "a kernel<float>", {record(kA100, {64}, 2)}), UserError);
  const std::string newer = "{\"ergotune_wisdom\":99,\"kernel\":\"a kernel<float>\"}\n" + good + "\n";
  for (const std::string& text :
       {newer, "{\"ergotune_wisdom\":2,\"kernel\":\"a kernel<float>\"}\n" + good + "\n" + newer}) {
    write_file(file, text);
    EXPECT_THROW(add_to_wisdom(folder.path(), "a kernel<float>", {record(kA100, {64}, 2)}), UserError)
        << "nobody would read it there";
    EXPECT_EQ(*read_file(file), text);
  }
  EXPECT_FALSE(read_wisdom(folder.path() / "none.wisdom"));
  std::filesystem::create_directories(folder.path() / "folder.wisdom");
  EXPECT_EQ(read_wisdom(folder.path() / "folder.wisdom")->warnings.size(), 1u);
}

const char* kProblem = R"(
name = "blur_problem"
[constants]
height = 128
width = 64
taps = 9
unused = 3
gain = 2.0
[parameters]
BX = [16, 32]
BY = { values = [1, 2], default = 2 }
[kernel]
function = "blur"
source = { opencl = { text = "SOURCE" } }
arguments = [
  { name = "n", type = "int32", value = "width" },
  { name = "gain", type = "float32", value = "gain" },
  { name = "a", type = "float32", count = "width * height * taps" },
]
[kernel.launch]
global = ["width", "height"]
block = ["BX", "BY"]
)";

Problem problem_with(const std::string& source, const std::string& from = {}, const std::string& to = {}) {
  std::string text = kProblem;
  text.replace(text.find("SOURCE"), 6, source);
  if (!from.empty()) text.replace(text.find(from), from.size(), to);
  return parse_problem(text, "/nowhere/p.toml");
}

TEST(WisdomKey, SizesAreWhatTheLaunchNamesThenWhatBuffersName) {
  const Problem problem = problem_with("kernel void blur() {}");
  EXPECT_EQ(size_names(problem, problem.kernel()), (std::vector<std::string>{"width", "height", "taps"}));
  EXPECT_EQ(problem_size(problem, problem.kernel(), problem.constants), (std::vector<std::int64_t>{64, 128, 9}));
  EXPECT_EQ(bound_constants(problem, problem.kernel()),
            (std::map<std::size_t, std::string>{{0, "width"}, {1, "gain"}}));
  EXPECT_EQ(wisdom_name(problem, problem.kernel()), "blur");
  const Problem numbers = problem_with("x", R"("width", "height"])", R"("2 * 64", "8"])");
  EXPECT_EQ(problem_size(numbers, numbers.kernel(), numbers.constants), (std::vector<std::int64_t>{64, 128, 9}))
      << "buffers name them";
}

// A stencil of radius 15 is other work than one of radius 3 on the same grid.
TEST(WisdomKey, WholeNumbersThatTheKernelIsGivenAreSizes) {
  const Problem problem =
      problem_with("kernel void blur() {}", R"({ name = "gain", type = "float32", value = "gain" })",
                   R"({ name = "radius", type = "int32", value = "unused" })");
  EXPECT_EQ(size_names(problem, problem.kernel()), (std::vector<std::string>{"width", "height", "taps", "unused"}));
  WisdomRequest request;
  request.device.name = "G";
  WisdomRecord record;
  record.device.name = "G";
  record.problem_size = problem_size(problem, problem.kernel(), problem.constants);
  request.problem_size = record.problem_size;
  EXPECT_EQ(select_wisdom({record}, request).match, WisdomMatch::exact);
  request.problem_size.back() = 15;
  EXPECT_EQ(select_wisdom({record}, request).match, WisdomMatch::near_size);
}

TEST(WisdomKey, CommentsSizesAndValuesDoNotMakeItStaleButCodeDoes) {
  const auto hash = [](const Problem& problem) {
    return source_hash(problem, problem.kernel(), "opencl", problem.constants);
  };
  const std::string plain = hash(problem_with("kernel void blur() { int unroll = 1; }"));
  EXPECT_EQ(hash(problem_with("kernel void blur() { int unroll = 1; } // faster")), plain);
  EXPECT_EQ(hash(problem_with("kernel void blur() { int unroll = 1; }", "width = 64", "width = 4096")), plain);
  EXPECT_EQ(hash(problem_with("kernel void blur() { int unroll = 1; }", "gain = 2.0", "gain = 3.0")), plain)
      << "a launch says it";
  EXPECT_EQ(hash(problem_with("kernel void blur() { int unroll = 1; }", "unused = 3", "unused = 4")), plain);
  EXPECT_EQ(hash(problem_with("kernel void blur() { int unroll = 1; }", "BX = [16, 32]", "BX = [16, 32, 64]")), plain);
  EXPECT_NE(hash(problem_with("kernel void blur() { int unroll = 2; }")), plain);
  EXPECT_NE(hash(problem_with("kernel void blur() { int unroll = 1; }", "float32\", value", "float64\", value")),
            plain);
  const auto used = [&](const char* from, const char* to) {
    return hash(problem_with("kernel void blur() { int unroll = unused; }", from, to));
  };
  EXPECT_NE(used("unused = 3", "unused = 4"), used("", ""));
}

TEST(WisdomKey, ARecordsValuesAreHeldAgainstTheProblem) {
  const Problem problem = problem_with("x");
  const auto values = [&](Constants configuration) {
    WisdomRecord r;
    r.configuration = std::move(configuration);
    return wisdom_configuration(problem, problem.constants, r);
  };
  EXPECT_EQ(values({{"BX", 32}}), (Configuration{32, 2}));
  EXPECT_THROW(values({{"BX", 48}}), UserError);
  EXPECT_THROW(values({{"BZ", 1}}), UserError);
}

TEST(WisdomKey, ALaunchThatTheDeviceDoesNotTakeIsNone) {
  Problem problem = problem_with("x", "block = [\"BX\", \"BY\"]", "block = [\"BX\", \"BY\", \"unused\"]");
  WisdomRecord r;
  r.configuration = {{"BX", 32}, {"BY", 2}};
  Constants constants = problem.constants;
  EXPECT_EQ(launchable_configuration(problem, problem.kernel(), constants, r), (Configuration{32, 2}));
  constants["device.max_threads_per_block"] = 191;
  EXPECT_THROW(launchable_configuration(problem, problem.kernel(), constants, r), UserError);
  constants["device.max_threads_per_block"] = 192;
  EXPECT_NO_THROW(launchable_configuration(problem, problem.kernel(), constants, r));
  constants["unused"] = 0;
  EXPECT_THROW(launchable_configuration(problem, problem.kernel(), constants, r), UserError);
}

TEST(WisdomKey, TheDefaultIsOneThatMeetsTheRestrictions) {
  EXPECT_EQ(default_configuration(problem_with("x"), problem_with("x").constants), (Configuration{16, 2}));
  const Problem problem = problem_with("x", "[constants]", "restrictions = [\"width % (BX * BY) == 0\"]\n[constants]");
  Constants constants = problem.constants;
  constants["width"] = 16;
  EXPECT_EQ(default_configuration(problem, constants), (Configuration{16, 1}));
  constants["width"] = 8;
  EXPECT_THROW(default_configuration(problem, constants), UserError);
}

TEST(WisdomKey, FilesThatOptionsNameDetermineTheSource) {
  const TemporaryFolder folder;
  folder.write("k.c", "#include <far.h>\nvoid f(int n) {}\n");
  folder.write(
      "k.toml",
      "[kernel]\nfunction = \"f\"\nsource = \"k.c\"\narguments = [{ name = \"n\", type = \"int32\", value = 1 }]\n"
      "[kernel.options]\nc = [\"-I" +
          (folder.path() / "away").string() + "\"]\n[parameters]\nT = [1]\n");
  std::filesystem::create_directory(folder.path() / "away");
  std::set<std::string> hashes;
  for (const char* text : {"1", "2"}) {
    folder.write("away/far.h", text);
    const Problem problem = load_problem(folder.path() / "k.toml");
    hashes.insert(source_hash(problem, problem.kernels.front(), "host", problem.constants));
  }
  EXPECT_EQ(hashes.size(), 2u);
}

}  // namespace
}  // namespace ergotune
