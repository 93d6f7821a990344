#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>

#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "ergotune/space.hpp"
#include "recorded_data.hpp"
#include "store/formats/recording.hpp"
#include "store/sqlite/store.hpp"
#include "store/written_files.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const std::string kHead = R"({
"device_name": "Some GPU",
"kernel_name": "conv_kernel",
"problem_size": [
4096,
4096
],
"tune_params_keys": [
"bx",
"kind"
],
"tune_params": {
"bx": [
16,
32
],
"kind": [
"a",
"b}"
]
},
"objective": "time",
"cache": {)";
const std::vector<std::string> kEntries{
    R"("16,a": {"bx": 16, "kind": "a", "time": 2.0, "times": [1.0, 2.0, 3.0], "compile_time": 100.0, "verification_time": 10, "benchmark_time": 7.5, "GFLOP/s": 12.5, "strategy_time": 0, "framework_time": 5.0, "timestamp": "2023-12-21 10:44:42"})",
    R"("16,b}": {"bx": 16, "kind": "b}", "time": "CompilationFailedConfig", "compile_time": 50.0})",
    R"("32,a": {"bx": 32, "kind": "a", "time": 4.0, "times": [4.0, 4.0], "nvml_energys": [8.0, 10.0], "nvml_energy": 9.0, "core_freqs": [1410, 1400], "core_freq": 1405.0, "temperature": 40, "power_readings": [[0.1, 50.0]], "compile_time": 1.0, "GFLOP/s": NaN})",
    R"("32,b}": {"bx": 32, "kind": "b}", "__error__": "RuntimeFailedConfig", "time": null, "compile_time": 2.0})"};

std::string cache_text(const std::string& separator = "\n", const std::string& end = "}\n}") {
  std::string text = kHead;
  for (std::size_t i = 0; i < kEntries.size(); ++i) text += (i ? "," : "") + separator + kEntries[i];
  return text + end;
}

class RecordingTest : public WrittenFiles {
 protected:
  std::filesystem::path write_gzip(const std::string& name, const std::string& text) {
    gzFile file = gzopen((folder_.path() / name).c_str(), "wb");
    gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
    gzclose(file);
    return folder_.path() / name;
  }
};

void check_whole(const Recording& r) {
  EXPECT_EQ(r.name, "conv_kernel");
  EXPECT_EQ(r.device, "Some GPU");
  ASSERT_EQ(r.size(), 4u);
  EXPECT_EQ(r.configuration(1), (Configuration{16, "b}"}));
  EXPECT_THAT(r.statuses, ElementsAre(Status::ok, Status::compile_error, Status::ok, Status::runtime_error));
  const Measurement first = r.measurement(0);
  EXPECT_DOUBLE_EQ(first.quantities.at("time").value, 2e-3);
  EXPECT_EQ(first.quantities.at("time").n, 3);
  EXPECT_NEAR(first.quantities.at("time").standard_error, 1e-3 / std::sqrt(3.0), 1e-9);
  EXPECT_EQ(first.quantities.at("time").provenance, Provenance::replayed);
  EXPECT_EQ(first.metrics.at("GFLOP/s"), 12.5);
  EXPECT_FLOAT_EQ(r.compile_seconds[0], 0.1f);
  EXPECT_FLOAT_EQ(r.verify_seconds[0], 0.01f);
  EXPECT_FLOAT_EQ(r.framework_seconds[0], 0.005f);
  EXPECT_FLOAT_EQ(r.run_seconds[0], 0.006f);
  EXPECT_FALSE(r.measurement(1).value("time").has_value());
  const Measurement third = r.measurement(2);
  EXPECT_EQ(third.quantities.at("energy").value, 9.0);
  EXPECT_EQ(third.quantities.at("energy").n, 2);
  EXPECT_NEAR(third.quantities.at("energy").standard_error, 1.0, 1e-6);
  EXPECT_EQ(third.quantities.at("core_clock").value, 1405e6);
  EXPECT_EQ(third.quantities.at("temperature").value, 40);
  EXPECT_FALSE(third.value("GFLOP/s").has_value());
  EXPECT_EQ(r.column("power_readings"), nullptr);
  EXPECT_EQ(r.column("timestamp"), nullptr);
}

TEST_F(RecordingTest, ReadsACache) {
  const Recording r = load_recording(write("a.json", cache_text()));
  check_whole(r);
  EXPECT_THAT(r.warnings, IsEmpty());
  EXPECT_FALSE(r.restrictions_known);
}

TEST_F(RecordingTest, ReadsItCompressedToo) { check_whole(load_recording(write_gzip("a.json.gz", cache_text()))); }

TEST_F(RecordingTest, ReadsEntriesThatDoNotStandOnLines) {
  check_whole(load_recording(write("one.json", cache_text("", "}}"))));
  std::string spread = cache_text();
  for (std::size_t at = spread.find(": {\"bx\""); at != std::string::npos; at = spread.find(": {\"bx\"", at + 1)) {
    spread.replace(at, 3, ":\n  {\n  ");
  }
  check_whole(load_recording(write("spread.json", spread)));
  std::string windows = cache_text();
  for (std::size_t at = windows.find('\n'); at != std::string::npos; at = windows.find('\n', at + 2)) {
    windows.replace(at, 1, "\r\n");
  }
  check_whole(load_recording(write("windows.json", windows)));
}

// Whatever byte a file ends at: every entry that is whole is read, and nothing else.
TEST_F(RecordingTest, AFileCutAnywhereLosesOnlyTheCutEntry) {
  const std::string text = cache_text();
  const std::size_t entries_begin = kHead.size();
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const auto file = write("cut.json", text.substr(0, cut));
    if (cut < entries_begin) {
      EXPECT_THROW(load_recording(file), UserError) << "cut at " << cut;
      continue;
    }
    std::size_t whole = 0, end = entries_begin;
    for (const std::string& entry : kEntries) {
      end += 1 + entry.size();  // the line end before it
      if (cut >= end) ++whole;
      ++end;  // the comma
    }
    const Recording r = load_recording(file);
    ASSERT_EQ(r.size(), whole) << "cut at " << cut;
    ASSERT_EQ(r.warnings.size(), cut < text.size() - 2 ? 1u : 0u) << "cut at " << cut;
    for (std::size_t row = 0; row < whole; ++row) {
      ASSERT_EQ(r.statuses[row],
                (std::vector{Status::ok, Status::compile_error, Status::ok, Status::runtime_error})[row]);
    }
  }
}

TEST_F(RecordingTest, ADamagedLineInTheMiddleLosesOnlyItself) {
  std::string text = kHead;
  for (int i = 0; i < 40; ++i) {
    text += (i ? ",\n" : "\n") + (i == 20 ? std::string("\"16,a\": {\"bx\": 16, \"ki") : kEntries[0]);
  }
  const Recording r = load_recording(write("a.json", text + "}\n}"));
  EXPECT_EQ(r.size(), 39u);
  ASSERT_THAT(r.warnings, SizeIs(1));
  EXPECT_THAT(r.warnings[0], HasSubstr("1 damaged"));
}

TEST_F(RecordingTest, TheExternalMeterIsTheEnergy) {
  const std::string entry =
      R"("16,a": {"bx": 16, "kind": "a", "time": 1.0, "ps_energy": 0.25, "nvml_energy": 0.5, "energy": 0.75})";
  const Recording r = load_recording(write("a.json", kHead + "\n" + entry + "}\n}"));
  const Measurement m = r.measurement(0);
  EXPECT_EQ(m.quantities.at("energy").value, 0.25);
  EXPECT_EQ(m.quantities.at("nvml_energy").value, 0.5);
  EXPECT_EQ(m.metrics.at("energy_metric"), 0.75);
}

TEST_F(RecordingTest, SaysWhatAFileIsNot) {
  const auto message = [&](const std::string& text) -> std::string {
    try {
      load_recording(write("x.json", text));
    } catch (const UserError& error) {
      return error.message();
    }
    return "no error";
  };
  EXPECT_THAT(message(""), HasSubstr("empty"));
  EXPECT_THAT(message("{}"), HasSubstr("Kernel Tuner cache"));
  EXPECT_THAT(message(kHead.substr(0, 200)), HasSubstr("cut off"));
  EXPECT_THAT(message("{\"ConfigurationSpace\": {}}"), HasSubstr("T1"));
  EXPECT_THAT(message("hello, world\n1,2\n"), HasSubstr("recording"));
  EXPECT_THAT(message("x,status\n1,fine\n"), HasSubstr("unknown status"));
  EXPECT_THROW(load_recording("no/such/file"), UserError);
}

TEST_F(RecordingTest, ReadsAStoredSession) {
  const auto file = folder_.path() / "s.ergotune";
  const Problem problem = load_problem(std::filesystem::path(ERGOTUNE_TEST_DATA) / "problems" / "vector_add.toml");
  {
    Store store = Store::open(file);
    const auto session = store.session({problem.name, "", "host", "gcc", "time", Provenance::measured},
                                       {"block_size", "unroll", "core_clock_mhz"}, "time", "{}", serialise(problem));
    Measurement bad;
    bad.status = Status::timeout;
    Measurement good;
    good.quantities["time"] = {0.25, 0.01, 12, "device events", "", Provenance::measured};
    good.metrics["bandwidth"] = 48;
    good.metric_errors["bandwidth"] = 3;
    good.message = "wide";
    good.compile_seconds = 1, good.verify_seconds = 2, good.measure_seconds = 3, good.tuner_seconds = 4;
    store.add(session, {128, 2, 1410}, bad);
    store.add(session, {128, 2, 1410}, good);
    store.add(session, {64, 1, 1275}, bad);
  }
  const Recording r = load_recording(file);
  EXPECT_EQ(r.name, "vector_add");
  EXPECT_EQ(r.device, "host");
  EXPECT_TRUE(r.restrictions_known);
  ASSERT_EQ(r.size(), 2u) << "the second try of a configuration replaces the failed first";
  EXPECT_EQ(r.configuration(0), (Configuration{128, 2, 1410}));
  EXPECT_THAT(r.parameters[0].values, ElementsAre(64, 128, 256, 512));
  EXPECT_THAT(r.parameters[2].values, ElementsAre(1275, 1410));
  EXPECT_EQ(r.parameters[2].kind, ParameterKind::core_clock_mhz);
  EXPECT_EQ(r.measurement(0).quantities.at("time").n, 12);
  const Measurement m = r.measurement(0);
  EXPECT_EQ(m.metrics.at("bandwidth"), 48);
  EXPECT_EQ(m.metric_errors.at("bandwidth"), 3);
  EXPECT_THAT(r.column("bandwidth")->n, IsEmpty()) << "one value of it";
  EXPECT_EQ(m.message, "wide");
  EXPECT_EQ(m.compile_seconds, 1);
  EXPECT_EQ(m.verify_seconds, 2);
  EXPECT_EQ(m.measure_seconds, 3);
  EXPECT_EQ(m.tuner_seconds, 4);
  EXPECT_EQ(r.statuses[1], Status::timeout);
  EXPECT_EQ(r.messages.size(), 1u);
  EXPECT_TRUE(std::isnan(r.column("time")->value[1]));
  EXPECT_THROW(load_recording(file, 7), UserError);
}

TEST(RecordedData, BenchmarkHubCachesAreReadWhole) {
  for (const char* name : {"convolution_A100", "convolution_A4000", "convolution_MI250X", "dedispersion_A100",
                           "dedispersion_A4000", "dedispersion_MI250X"}) {
    const Recording r = load_recording(test::recorded_data() / "caches" / (std::string(name) + ".json.gz"));
    EXPECT_THAT(r.warnings, IsEmpty()) << name;
    ASSERT_TRUE(r.restrictions_known) << name;
    const SearchSpace space = SearchSpace::build(r.parameters, r.restrictions);
    EXPECT_EQ(r.size(), space.size()) << name;
    EXPECT_EQ(r.run_seconds.size(), r.size());
  }
}

TEST(RecordedData, FailuresOfTheA4000) {
  const Recording r = load_recording(test::recorded_data() / "caches" / "convolution_A4000.json.gz");
  EXPECT_EQ(std::ranges::count(r.statuses, Status::compile_error), 6);
  EXPECT_EQ(std::ranges::count(r.statuses, Status::runtime_error), 155);
}

TEST(RecordedData, T4SaysTheSameAsTheCache) {
  const Recording cache = load_recording(test::recorded_data() / "caches" / "convolution_A100.json.gz");
  const Recording t4 = load_recording(test::recorded_data() / "caches" / "convolution_A100.T4.json.gz");
  ASSERT_EQ(t4.size(), cache.size());
  for (std::size_t row = 0; row < cache.size(); ++row) {
    ASSERT_EQ(t4.configuration(row), cache.configuration(row));
    ASSERT_EQ(t4.measurement(row).value("time"), cache.measurement(row).value("time"));
    ASSERT_FLOAT_EQ(t4.run_seconds[row], cache.run_seconds[row]);
  }
}

TEST(RecordedData, OpenEnergyCache) {
  const Recording r = load_recording(test::recorded_data() / "energy" / "gemm_A100_898_open.json.gz");
  EXPECT_EQ(r.size(), 898u);
  EXPECT_THAT(r.warnings, SizeIs(1));
  EXPECT_EQ(r.parameters[0].kind, ParameterKind::power_limit_w);
  EXPECT_EQ(r.parameters[1].kind, ParameterKind::core_clock_mhz);
  const Measurement m = r.measurement(0);
  EXPECT_NEAR(m.quantities.at("energy").value, 8.34366, 1e-9);
  EXPECT_EQ(m.quantities.at("energy").n, 32);
  EXPECT_GT(m.quantities.at("energy").standard_error, 0.1);
  EXPECT_NEAR(m.quantities.at("core_clock").value, 1341.5625e6, 1);
  EXPECT_NEAR(m.quantities.at("memory_clock").value, 1215e6, 1);
}

TEST(RecordedData, ExternalMeterOfTheAda) {
  const Recording r = load_recording(test::recorded_data() / "energy" / "vector_add_RTX4000Ada.json");
  EXPECT_EQ(r.size(), 15u);
  EXPECT_NEAR(r.measurement(0).quantities.at("energy").value, 0.237, 1e-3);
}

std::string packed(const std::string& text) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string rows(int count) {
  std::string text = "bx,status,time\n";
  for (int i = 0; i < count; ++i) text += std::to_string(i) + ",ok,0." + std::to_string(1234567 + 7919 * i) + "\n";
  return text;
}

std::string cache(int count) {
  std::string text = R"({"kernel_name": "k", "device_name": "d", "tune_params_keys": ["x"], "tune_params": {"x": [)";
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + std::to_string(i);
  text += "]}, \"cache\": {\n";
  for (int i = 0; i < count; ++i)
    text += "\"" + std::to_string(i) + "\": {\"x\": " + std::to_string(i) +
            ", \"time\": " + std::to_string(1.0 + 0.0137 * i) + "}" + (i + 1 < count ? ",\n" : "}\n}");
  return text;
}

class Damaged : public WrittenFiles {};

TEST_F(Damaged, ACutStreamIsSaidWhereverItWasCut) {
  for (const std::string& text : {rows(300), cache(300)}) {
    const std::string name = text[0] == '{' ? "c.json.gz" : "c.csv.gz";
    const std::string whole = packed(text);
    EXPECT_TRUE(read(name, whole).warnings.empty()) << name;
    const Recording all = read(name, whole);
    for (std::size_t size = whole.size() / 2; size < whole.size(); size += 31) {
      const Recording part = read(name, whole.substr(0, size));
      EXPECT_FALSE(part.warnings.empty()) << name << " cut to " << size;
      ASSERT_LE(part.size(), all.size());
      for (std::size_t i = 0; i < part.size(); ++i)
        EXPECT_EQ(part.measurement(i).value("time"), all.measurement(i).value("time"))
            << "no part of a number is a number";
    }
  }
}

TEST_F(Damaged, AFlippedBitIsDamageAndNoEmptyFile) {
  for (const std::string& text : {rows(300), cache(300)}) {
    std::string bytes = packed(text);
    bytes[bytes.size() - 7] = static_cast<char>(bytes[bytes.size() - 7] ^ 1);  // of the checksum
    const std::string said = complaint(text[0] == '{' ? "c.json.gz" : "c.csv.gz", bytes);
    EXPECT_NE(said.find("damaged"), std::string::npos) << said;
  }
}

TEST_F(Damaged, ALastLineWithoutAnEndIsRemarked) {
  EXPECT_TRUE(read("a.csv", "bx,status,time\n1,ok,0.439\n").warnings.empty());
  EXPECT_EQ(read("a.csv", "bx,status,time\n1,ok,0.439").warnings.size(), 1u);
}

TEST_F(Damaged, WhatIsMadeToFillMemoryIsRefused) {
  const std::string brackets = packed(std::string(100u << 20, '['));
  EXPECT_LT(brackets.size(), 200'000u);
  EXPECT_THROW(read("b.json.gz", brackets), UserError);
  EXPECT_THROW(read("z.csv.gz", packed(std::string(100u << 20, '1'))), UserError);
  EXPECT_THROW(load_recording("/dev/zero"), UserError);
  const auto fifo = folder_.path() / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THROW(load_recording(fifo), UserError);
}

TEST_F(Damaged, NestingIsBounded) {
  constexpr int kDeep = 300'000;
  const std::string deep = std::string(kDeep, '[') + std::string(kDeep, ']');
  EXPECT_THROW(read("a.json", "{\"results\": " + deep + "}"), UserError);
  EXPECT_THROW(read("b.json", R"({"results": [{"configuration": {"x": )" + deep + R"(}, "invalidity": "correct"}]})"),
               UserError);
  EXPECT_THROW(read("c.json", R"({"kernel_name": "k", "tune_params_keys": ["x"], "tune_params": {"x": [)" + deep +
                                  R"(]}, "cache": {}})"),
               UserError);
}

}  // namespace
}  // namespace ergotune
