// Exports where names meet, values are odd, and letters are not of ASCII.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "ergotune/problem_file.hpp"
#include "store/formats/export.hpp"
#include "store/sqlite/store.hpp"
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

json entry_of(const ResultSet& results) { return json::parse(to_kernel_tuner_cache(results))["cache"].front(); }

TEST(ExportForms, ASensorIsReportedByTheNameOfItsQuantity) {
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

class StoredResults : public WrittenFiles {
 protected:
  Problem problem_ = load_problem(std::filesystem::path(ERGOTUNE_TEST_DATA) / "problems" / "vector_add.toml");
  Store store_ = Store::open(folder_.path() / "s.db");
  std::int64_t session(const std::string& document) {
    return store_.session(SessionKey{.problem = "p", .problem_document = document, .device = "D"},
                          {"block_size", "extra"}, "energy", "{}", document);
  }
};

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

}  // namespace
}  // namespace ergotune
