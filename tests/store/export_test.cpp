#include "store/formats/export.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/process/process.hpp"
#include "ergotune/problem_file.hpp"
#include "store/written_files.hpp"

namespace ergotune {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

ResultSet some_results() {
  ResultSet results;
  results.problem = "add";
  results.kernel = "vector_add";
  results.device = "NVIDIA A100-PCIE-40GB";
  results.environment = R"({"driver": "550"})";
  results.metrics = {{"gflops", Expression::parse("1/time"), "GFLOP/s"}};
  Parameter block, kind, clock;
  block.name = "block_size_x";
  block.values = {64, 128, 256};
  kind.name = "half";
  kind.values = {false, true};
  clock.name = "core_clock_mhz";
  clock.kind = ParameterKind::core_clock_mhz;
  clock.values = {1410};
  results.parameters = {block, kind, clock};
  Measurement good;
  good.quantities["time"] = {2.5e-3, 1e-5, 3, "device events", "", Provenance::measured};
  good.quantities["energy"] = {0.5, 0.01, 4, "regression", "nvml:0", Provenance::measured};
  good.quantities["core_clock"] = {1.405e9, 0, 4, "", "nvml:0", Provenance::measured};
  good.metrics["gflops"] = 400;
  good.times = {2.4e-3, 2.5e-3, 2.6e-3};
  good.compile_seconds = 0.5;
  good.finished_at = 1703155482.25;
  Measurement failed;
  failed.status = Status::compile_error;
  failed.message = "error: \"x\",\nline 2";
  Measurement wrong;
  wrong.status = Status::wrong_result;
  results.rows = {{1, {64, false, 1410}, good}, {2, {128, true, 1410}, failed}, {3, {256, true, 1410}, wrong}};
  return results;
}

class ExportTest : public WrittenFiles {};

TEST_F(ExportTest, ObjectiveIsOneThatEveryEntryHas) {
  ResultSet results = some_results();
  results.objective = "energy";
  const json cache = json::parse(to_kernel_tuner_cache(results));
  EXPECT_EQ(cache["objective"], "nvml_energy");
  for (const auto& [key, entry] : cache["cache"].items()) EXPECT_TRUE(entry.contains("nvml_energy")) << key;
  results.objective = "0.5*time + 0.5*energy";
  EXPECT_EQ(json::parse(to_kernel_tuner_cache(results))["objective"], "time");
}

TEST_F(ExportTest, ACacheHasOneEntryPerConfiguration) {
  ResultSet results = some_results();
  results.rows.push_back(results.rows[0]);
  results.rows.back().configuration = results.rows[1].configuration;  // failed first, worked later
  const json cache = json::parse(to_kernel_tuner_cache(results));
  EXPECT_EQ(cache["cache"].size(), 3u);
  EXPECT_DOUBLE_EQ(cache["cache"]["128,True,1410"]["time"], 2.5);
  results.rows.clear();
  EXPECT_EQ(json::parse(to_kernel_tuner_cache(results))["cache"].size(), 0u);
}

TEST_F(ExportTest, CsvComesBackAsItWas) {
  const Recording r = load_recording(write("a.csv", to_csv(some_results())));
  EXPECT_THAT(r.statuses, ElementsAre(Status::ok, Status::compile_error, Status::wrong_result));
  EXPECT_EQ(r.configuration(1), (Configuration{128, true, 1410}));
  const Measurement m = r.measurement(0);
  EXPECT_EQ(m.quantities.at("time").value, 2.5e-3);
  EXPECT_EQ(m.quantities.at("time").n, 3);
  EXPECT_EQ(m.quantities.at("energy").value, 0.5);
  EXPECT_EQ(m.metrics.at("gflops"), 400);
  EXPECT_FLOAT_EQ(r.compile_seconds[0], 0.5f);
}

// An interval hangs on the degrees of freedom of its error, which n alone does not say.
TEST_F(ExportTest, CsvKeepsIntervals) {
  ResultSet results = some_results();
  results.rows[0].measurement.quantities["time"] = {2.5e-3, 1e-5, 3, "", "", Provenance::measured, 2};
  results.rows[0].measurement.quantities["energy"] = {0.5, 1e-2, 40, "", "", Provenance::measured, 3.25};
  results.rows[0].measurement.quantities["power"] = {200, 4, 40, "", "", Provenance::measured, 0};
  const std::string text = to_csv(results);
  EXPECT_THAT(text, HasSubstr(",energy_degrees"));
  EXPECT_THAT(text, testing::Not(HasSubstr(",time_degrees"))) << "n - 1";
  const Measurement before = results.rows[0].measurement, after = load_recording(write("a.csv", text)).measurement(0);
  for (const char* name : {"time", "energy", "power"})
    EXPECT_NEAR(after.half_width(name) / before.half_width(name), 1, 1e-6) << name;
}

std::vector<BestResult> some_best() {
  const ResultSet results = some_results();
  BestResult best{"add",
                  results.device,
                  "energy",
                  {{"n", 1024}},
                  results.parameters,
                  results.rows[0].configuration,
                  results.rows[0].measurement};
  BestResult other = best;
  other.device = "host */ 2";
  other.configuration = {128, true, 1410};
  for (auto& [name, quantity] : other.measurement.quantities) quantity.provenance = Provenance::simulated;
  return {best, other};
}

TEST_F(ExportTest, HeaderCompilesForEachDevice) {
  const auto header = write("add.h", to_c_header(some_best()));
  const auto main = write(
      "main.c", "#include \"add.h\"\n#include <stdio.h>\nint main(void) { printf(\"%d %d\", block_size_x, half); }\n");
  const auto run = [&](const std::string& option) {
    const std::string program = (folder_.path() / "main").string();
    std::vector<std::string> command{"cc", "-Wall", "-Werror", main.string(), "-o", program};
    if (!option.empty()) command.push_back(option);
    const ProcessResult built = run_process(command);
    return built.ok() ? run_process({program}).out : built.err;
  };
  EXPECT_EQ(run(""), "64 0");
  EXPECT_EQ(run("-DTARGET_NVIDIA_A100_PCIE_40GB"), "64 0");
  EXPECT_EQ(run("-DTARGET_HOST_2"), "128 1");
  std::ifstream stream(header);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  EXPECT_THAT(text, HasSubstr("run at core_clock_mhz = 1410"));
  EXPECT_THAT(text, Not(HasSubstr("#define core_clock_mhz")));
  EXPECT_THAT(text, HasSubstr("(simulated)"));
}

TEST_F(ExportTest, ResultSetOfAStore) {
  const auto file = folder_.path() / "s.ergotune";
  const Problem problem = load_problem(std::filesystem::path(ERGOTUNE_TEST_DATA) / "problems" / "vector_add.toml");
  Store store = Store::open(file);
  EXPECT_THROW(result_set(store), UserError);
  const auto session = store.session({problem.name, "", "host", "gcc", "time", Provenance::measured},
                                     {"block_size", "unroll", "core_clock_mhz"}, "time", "{}", serialise(problem));
  store.add(session, {128, 2, 1410}, some_results().rows[0].measurement);
  const ResultSet results = result_set(store);
  EXPECT_EQ(results.kernel, "vector_add");
  EXPECT_EQ(results.constants.at("n"), Value(1000000));
  EXPECT_THAT(results.parameters[0].values, ElementsAre(64, 128, 256, 512));
  EXPECT_THAT(results.parameters[2].values, ElementsAre(1410));
  EXPECT_EQ(results.rows.size(), 1u);
  EXPECT_THROW(result_set(store, 9), UserError);
}

}  // namespace
}  // namespace ergotune
