// Exports where names meet, values are odd, and letters are not of ASCII.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ergotune/problem/load.hpp"
#include "ergotune/store/export.hpp"
#include "ergotune/store/store.hpp"
#include "store/written_files.hpp"

namespace ergotune {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

ResultSet one_result() {
  ResultSet results;
  results.problem = results.kernel = "k";
  results.device = "Größe";
  Parameter block;
  block.name = "block";
  block.values = {64, 128};
  results.parameters = {block};
  Measurement m;
  m.quantities["time"] = {0.5, 0, 1, "", "", Provenance::measured};
  results.rows = {{1, {64}, m}};
  return results;
}

json entry_of(const ResultSet& results) {
  return json::parse(to_kernel_tuner_cache(results))["cache"].front();
}

TEST(ExportForms, NamesAndValuesOfStrangersEndNoLineOfAHeader) {
  BestResult best{"p\n#error", "d\n#error", "time\n#error", {}, one_result().parameters, {Value("1\n#error")}, {}};
  best.parameters[0].name = "n\n#error";
  EXPECT_THAT(to_c_header({best}), testing::Not(HasSubstr("\n#error")));
}

TEST(ExportForms, LettersStayWhatTheyAreAndEachFileHasItsLayout) {
  ResultSet results = one_result();
  results.rows[0].measurement.status = Status::compile_error;
  results.rows[0].measurement.message = "für";
  const std::string cache = to_kernel_tuner_cache(results);
  EXPECT_TRUE(cache.starts_with(
      "{\n\"device_name\": \"Größe\",\n\"kernel_name\": \"k\",\n\"tune_params_keys\": "
      "[\n\"block\"\n],\n\"tune_params\": {\n"
      "\"block\": [\n64,\n128\n]\n},\n\"objective\": \"time\",\n\"cache\": {\n\"64\": {\"block\":64,"))
      << cache;
  EXPECT_THAT(cache, HasSubstr("\"error_message\":\"für\"")) << "an entry stands on one line";
  EXPECT_THAT(cache, testing::Not(HasSubstr("provenance"))) << "measured, as all of Kernel Tuner's are";
  results.rows.clear();
  EXPECT_EQ(to_t4_results(results),
            "{\n \"metadata\": {\n  \"timeunit\": \"milliseconds\",\n  \"kernel\": \"k\",\n  \"device\": "
            "\"Größe\",\n  \"provenance\": \"measured\"\n },\n"
            " \"results\": [],\n \"schema_version\": \"1.0.0\"\n}\n");
  EXPECT_TRUE(to_t4_metadata(results).starts_with(
      "{\n \"metadata\": {\n  \"hardware\": {\n   \"hardware_description\": [\n    {\n     \"device\": "
      "\"Größe\"\n    }\n   ]\n  },\n"));
}

TEST(ExportForms, AParameterKeepsItsNameAgainstQuantitiesAndMetrics) {
  ResultSet results = one_result();
  Measurement& m = results.rows[0].measurement;
  m.quantities["block"] = {7, 0, 1, "", "", Provenance::measured};
  m.quantities["odd"] = {INFINITY, 0, 1, "", "", Provenance::measured};
  m.metrics = {{"block", 8}, {"time", 9}, {"gain", 3}, {"none", NAN}};
  const json entry = entry_of(results);
  EXPECT_EQ(entry["block"], 64);
  EXPECT_EQ(entry["time"], 500) << "a quantity's against a metric's";
  EXPECT_EQ(entry["gain"], 3);
  EXPECT_FALSE(entry.contains("odd") || entry.contains("none"));
  EXPECT_FALSE(entry.contains("times") || entry.contains("timestamp") || entry.contains("error_message"));
  const json document = json::parse(to_t4_results(results));
  for (const json& measured : document["results"][0]["measurements"]) EXPECT_NE(measured["name"], "odd");
}

TEST(ExportForms, ACachesObjectiveIsOneThatEveryUsableRowHas) {
  ResultSet results = one_result();
  const auto objective = [&](const std::string& name) {
    results.objective = name;
    return json::parse(to_kernel_tuner_cache(results))["objective"].get<std::string>();
  };
  results.rows[0].measurement.metrics["gain"] = 3;
  results.rows[0].measurement.quantities["core_clock"] = {1e9, 0, 1, "", "", Provenance::measured};
  EXPECT_EQ(objective("gain"), "gain");
  EXPECT_EQ(objective("core_clock"), "core_freq");
  EXPECT_EQ(objective("none"), "time");
  Measurement failed;
  failed.status = Status::timeout;
  results.rows.insert(results.rows.begin(), {2, {128}, failed});
  EXPECT_EQ(objective("core_clock"), "core_freq") << "failures have nothing";
  EXPECT_EQ(json::parse(to_kernel_tuner_cache(results))["cache"]["128"]["core_freq"], "RuntimeFailedConfig");
  results.rows.push_back({3, {128}, one_result().rows[0].measurement});
  EXPECT_EQ(objective("core_clock"), "time");
}

TEST(ExportForms, OfAConfigurationMeasuredTwiceTheFirstUsableRowStands) {
  const std::pair<std::vector<Status>, double> cases[] = {{{Status::ok, Status::ok}, 1000},
                                                          {{Status::ok, Status::timeout}, 1000},
                                                          {{Status::timeout, Status::not_converged}, 2000},
                                                          {{Status::timeout, Status::ok, Status::ok}, 2000}};
  for (const auto& [statuses, time] : cases) {
    ResultSet results = one_result();
    results.rows.clear();
    for (const Status status : statuses) {
      StoredRow row = one_result().rows[0];
      row.measurement.status = status;
      row.measurement.quantities["time"].value = static_cast<double>(results.rows.size() + 1);
      results.rows.push_back(row);
    }
    EXPECT_EQ(entry_of(results)["time"], time);
  }
}

TEST(ExportForms, ASensorIsToldByTheNameOfItsQuantity) {
  const std::pair<const char*, const char*> names[] = {
      {"nvml:0", "nvml_"}, {"powersensor3:0", "ps_"}, {"powersensor2:1", "ps_"}, {"rapl", ""}, {"", ""}};
  for (const auto& [sensor, prefix] : names) {
    ResultSet results = one_result();
    for (const char* name : {"energy", "power", "temperature"})
      results.rows[0].measurement.quantities[name] = {3, 0, 1, "", sensor, Provenance::measured};
    const json entry = entry_of(results);
    for (const char* name : {"energy", "power"}) EXPECT_EQ(entry[prefix + std::string(name)], 3) << sensor;
    EXPECT_EQ(entry["temperature"], 3) << sensor;
  }
}

TEST(ExportForms, AMomentIsWrittenToItsMicrosecond) {
  ResultSet results = one_result();
  const std::pair<double, const char*> moments[] = {{951782399.5, "2000-02-28 23:59:59.500000+00:00"},
                                                    {1798761599.999999, "2026-12-31 23:59:59.999999+00:00"},
                                                    {1.0, "1970-01-01 00:00:01.000000+00:00"},
                                                    {0.25, "1970-01-01 00:00:00.250000+00:00"}};
  for (const auto& [seconds, text] : moments) {
    results.rows[0].measurement.finished_at = seconds;
    EXPECT_EQ(entry_of(results)["timestamp"].get<std::string>().substr(0, 25),
              std::string(text).substr(0, 25));
    EXPECT_EQ(json::parse(to_t4_results(results))["results"][0]["timestamp"].get<std::string>().size(),
              std::string(text).size());
  }
}

TEST(ExportForms, TheProblemSizeIsAsLongAsItsFirstAxes) {
  ResultSet results = one_result();
  const auto sizes = [&](const Constants& constants) {
    results.constants = constants;
    const json cache = json::parse(to_kernel_tuner_cache(results));
    return cache.contains("problem_size") ? cache["problem_size"].dump() : "none";
  };
  EXPECT_EQ(sizes({{"n", 3}}), "none");
  EXPECT_EQ(sizes({{"problem_size_y", 3}}), "none");
  EXPECT_EQ(sizes({{"problem_size_x", 3}, {"problem_size_z", 5}}), "[3]");
  EXPECT_EQ(sizes({{"problem_size_x", 3}, {"problem_size_y", 4}, {"problem_size_z", 5}}), "[3,4,5]");
}

TEST(ExportForms, CsvQuotesWhatWouldEndACell) {
  ResultSet results = one_result();
  Parameter word;
  word.name = "a,b";
  results.parameters.push_back(word);
  Measurement& m = results.rows[0].measurement;
  for (const auto& [text, cell] : {std::pair{"plain 'x'", "plain 'x'"},
                                   {"a,b", "\"a,b\""},
                                   {"say \"x\"", "\"say \"\"x\"\"\""},
                                   {"a\rb", "\"a\rb\""},
                                   {"a\nb", "\"a\nb\""}}) {
    m.message = text;
    results.rows[0].configuration = {64, text};
    EXPECT_EQ(to_csv(results),
              "block,\"a,b\",status,time,time_standard_error,time_n,compile_seconds,verify_seconds,measure_"
              "seconds,tuner_seconds,"
              "provenance,finished_at,message\n64," +
                  std::string(cell) + ",ok,0.5,0,1,0,0,0,0,measured,0," + cell + "\n");
  }
}

class StoredResults : public WrittenFiles {
 protected:
  Problem problem_ = load_problem(std::filesystem::path(ERGOTUNE_TEST_DATA) / "problems" / "vector_add.toml");
  Store store_ = Store::open(folder_.path() / "s.db");
  std::int64_t session(const std::string& document) {
    return store_.session(SessionIdentity{.problem = "p", .problem_document = document, .device = "D"},
                          {"block_size", "extra"}, "energy", "{}", document);
  }
};

TEST_F(StoredResults, ValuesThatWereMetFollowThoseOfTheProblem) {
  const auto id = session(serialise(problem_));
  for (const auto& [block, extra] : {std::pair{512, 5}, {32, 3}, {64, 4}, {16, 3}})
    store_.add(id, {block, extra}, {});
  const ResultSet results = result_set(store_, id);
  EXPECT_THAT(results.parameters[0].values, ElementsAre(64, 128, 256, 512, 16, 32));
  EXPECT_THAT(results.parameters[1].values, ElementsAre(3, 4, 5));
  EXPECT_EQ(results.parameters[1].name, "extra");
}

TEST_F(StoredResults, KernelsAreCalledByTheirNamesAndOneByItsFunction) {
  EXPECT_EQ(result_set(store_, session(serialise(problem_))).kernel, "vector_add");
  problem_.kernels.push_back(problem_.kernels[0]);
  problem_.kernels[0].name = "first";
  problem_.kernels[1].name = "second";
  EXPECT_EQ(result_set(store_, session(serialise(problem_))).kernel, "first, second");
  for (const char* nothing : {"", "{}"}) {
    const ResultSet bare = result_set(store_, session(nothing));
    EXPECT_EQ(bare.kernel + bare.problem + bare.device, "ppD") << "of an import nothing more is known";
    EXPECT_EQ(bare.objective, "energy");
  }
}

TEST_F(StoredResults, TheGoalIsTheLastRunsAndWithoutRunsTheProblems) {
  problem_.objective = {"bandwidth", Direction::maximise};
  const auto id = session(serialise(problem_));
  const auto check = [&](const std::string& text, Direction direction) {
    const ResultSet results = result_set(store_, id);
    EXPECT_EQ(results.objective, text);
    EXPECT_EQ(results.goal.text, text);
    EXPECT_EQ(results.goal.direction, direction);
    const Recording recording = load_recording(store_.file(), id);
    EXPECT_EQ(recording.objective.text, text);
    EXPECT_EQ(recording.objective.direction, direction);
  };
  check("bandwidth", Direction::maximise);
  RunInfo run;
  run.objective = {"power", Direction::minimise};
  store_.begin_run(id, run);
  check("power", Direction::minimise);
}

TEST_F(StoredResults, AStoredProblemThatCannotBeReadTakesNoRowsWithIt) {
  const auto id = session(R"({"no": "problem"})");
  Measurement m;
  m.quantities["time"] = {0.5, 0, 0, "", "", Provenance::measured};
  store_.add(id, {1, 2}, m);
  const Recording recording = load_recording(store_.file(), id);
  EXPECT_THAT(recording.warnings, ElementsAre(HasSubstr("the stored problem cannot be read: ")));
  ASSERT_EQ(recording.size(), 1u);
  EXPECT_EQ(recording.measurement(0).quantities.at("time").n, 1) << "once at least";
  EXPECT_EQ(recording.compile_seconds.size(), 1u) << "a store knows what it cost";
  EXPECT_FALSE(recording.restrictions_known);
}

TEST_F(StoredResults, ARowThatWasConfirmedSaysForWhat) {
  const auto id = session("{}");
  RunInfo run;
  run.objective.text = "power";
  StoredRow row;
  row.kind = RowKind::confirmed;
  row.run = store_.begin_run(id, run);
  row.configuration = {1, 2};
  store_.add(id, {3, 4}, {});
  store_.add(id, row);
  const Recording recording = load_recording(store_.file(), id);
  ASSERT_EQ(recording.confirmed.size(), 1u);
  EXPECT_EQ(recording.confirmed.begin()->first, 1u);
  EXPECT_EQ(recording.confirmed.begin()->second.text, "power");
}

}  // namespace
}  // namespace ergotune
