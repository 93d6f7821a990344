#include "report/report.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "ergotune/error.hpp"
#include "report/ranked_results.hpp"
#include "report/recording_analysis.hpp"
#include "store/sqlite/store.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kCache = R"({
"device_name": "Some <GPU>", "kernel_name": "k</script>", "problem_size": 1,
"tune_params_keys": ["a", "b"], "tune_params": {"a": [1, 2, 4], "b": [0, 1]}, "objective": "time",
"cache": {
"1,0": {"a": 1, "b": 0, "time": 4.0, "times": [4.0, 4.1, 3.9], "compile_time": 10, "verification_time": 0, "benchmark_time": 1},
"1,1": {"a": 1, "b": 1, "time": "RuntimeFailedConfig", "compile_time": 10, "verification_time": 0, "benchmark_time": 1},
"2,0": {"a": 2, "b": 0, "time": 2.0, "times": [2.0, 2.1, 1.9], "compile_time": 10, "verification_time": 0, "benchmark_time": 1},
"4,1": {"a": 4, "b": 1, "time": 3.0, "times": [3.0, 3.1, 2.9], "compile_time": 10, "verification_time": 0, "benchmark_time": 1}}
})";

class Report : public ::testing::Test {
 protected:
  void SetUp() override { temporary_.write("cache.json", kCache); }

  std::string page() {
    std::ifstream in(folder_ / "report.html");
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  nlohmann::json data() {
    const std::string text = page();
    const std::string mark = "id=\"data\">";
    const auto begin = text.find(mark) + mark.size();
    const auto all = nlohmann::json::parse(text.substr(begin, text.find("</script>", begin) - begin));
    nlohmann::json document = all["document"];
    document.update(all["findings"]);
    document["results"] = all["results"];
    return document;
  }

  const TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
};

/// A store with one session of these (time, energy), of a parameter x that counts from 1.
std::filesystem::path stored(const std::filesystem::path& file, const std::string& objective,
                             const std::vector<std::pair<double, double>>& results) {
  Store store = Store::open(file);
  const auto session = store.session(SessionKey{.problem = "p"}, {"x"}, objective, "{}", "{}");
  int x = 0;
  for (const auto& [time, energy] : results) {
    Measurement m;
    m.quantities["time"].value = time;
    m.quantities["energy"].value = energy;
    store.add(session, {++x}, m);
  }
  return file;
}

TEST_F(Report, HasEachConfigurationBesideWhatTheOthersPredict) {
  std::vector<std::pair<double, double>> results;
  for (int x = 1; x <= 20; ++x) results.emplace_back(1 + 0.1 * x, 2.0);
  results[9].first = 4;  // unlike its neighbours
  write_report(stored(folder_ / "a.db", "time", results), 0, folder_ / "report.html");
  const nlohmann::json predictions = data()["predictions"];
  ASSERT_EQ(predictions.size(), 2u);
  const nlohmann::json& time = predictions[1];
  EXPECT_EQ(time["quantity"], "time");
  ASSERT_EQ(time["points"].size(), 20u);
  const std::string provenance = time["provenance"];
  EXPECT_EQ(time["points"][0]["configuration"]["x"], 1);
  const nlohmann::json& outlier = time["points"][19];
  EXPECT_EQ(outlier[provenance], 4);
  EXPECT_LT(outlier["modelled"]["value"], 3);
  EXPECT_LT(outlier["modelled"]["low"], outlier["modelled"]["value"]);
}

// The machine had twice the load when the best were measured again.
TEST_F(Report, TheMedianIsThatOfTheLoadUnderWhichTheBestIsConfirmed) {
  ResultSet results;
  results.parameters = {Parameter{.name = "x"}};
  const ObjectiveSpec goal = Objective::parse({"time", std::nullopt, {}}, {}).spec();
  const auto timed = [](double time) {
    Measurement m;
    m.quantities["time"].value = time;
    return m;
  };
  for (int x = 1; x <= 5; ++x) {
    StoredRow& row = results.rows.emplace_back();
    row.configuration = {x};
    row.measurement = timed(x);
    if (x > 2) continue;
    row.searched = timed(x);
    row.measurement = timed(2 * x);
    row.rounds = 3;
    row.confirmed_for = goal;
  }
  const RankedResults ranked = rank_results(results);
  EXPECT_DOUBLE_EQ(ranked.median.value(), 6) << "the search's 3, under the load of the confirmation";
  EXPECT_DOUBLE_EQ(ranked.gain_over_median()->factor, 3);
  const RankedResults by_other = rank_results(results, "2 * time");
  EXPECT_DOUBLE_EQ(by_other.median.value(), 12);
  EXPECT_DOUBLE_EQ(by_other.gain_over_median()->factor, 3) << "whatever the objective of the view";
}

TEST(RankedResults, HaveNoMedianWhereRepeatsScatter) {
  ResultSet results;
  results.parameters = {Parameter{.name = "x"}};
  const auto timed = [](double time) {
    Measurement m;
    m.quantities["time"].value = time;
    return m;
  };
  for (int i = 1; i <= 5; ++i) {
    StoredRow& row = results.rows.emplace_back();
    row.configuration = {i};
    row.measurement = timed(i);
    if (i > 3) continue;
    row.searched = timed(i);
    row.measurement = timed(i == 1 ? 0.5 : 20 * i);
    row.rounds = 3;
    row.confirmed_for = Objective::parse({"time", std::nullopt, {}}, {}).spec();
  }
  EXPECT_FALSE(rank_results(results).median);
}

TEST(RankedResults, ScreenedConfigurationsHaveWorked) {
  ResultSet results;
  results.parameters = {Parameter{.name = "x"}};
  results.objective = "energy";
  for (int i = 0; i < 20; ++i) {
    StoredRow& row = results.rows.emplace_back();
    row.configuration = {i % 2};
    row.measurement.quantities["time"].value = 1;
    if (i % 2 == 0) row.measurement.quantities["energy"].value = 1 + i;
  }
  const RankedResults ranked = rank_results(results, "energy");
  EXPECT_EQ(ranked.screened(), 10u);
  EXPECT_TRUE(ranked.importance().ruled_out.empty());
}

TEST_F(Report, TellsBestMedianDefaultAndFailures) {
  const auto summary = write_report(folder_ / "cache.json", 0, folder_ / "report.html");
  EXPECT_EQ(summary.configurations, 4u);
  EXPECT_EQ(summary.failed, 1u);
  const auto document = data();
  EXPECT_DOUBLE_EQ(document["best"]["objective"].get<double>(), 0.002);  // ms became s
  EXPECT_DOUBLE_EQ(document["median"].get<double>(), 0.003);
  EXPECT_DOUBLE_EQ(document["default"]["objective"].get<double>(), 0.004);
  EXPECT_GT(document["best"]["half_width"].get<double>(), 0);
  EXPECT_EQ(document["failures"][0]["status"], "runtime_error");
  EXPECT_EQ(document["failures"][0]["configuration"], nlohmann::json({{"a", 1}, {"b", 1}}));
  EXPECT_EQ(document["convergence"], nlohmann::json::parse("[[1,0.004,null],[3,0.002,null],[4,0.002,null]]"));
  EXPECT_DOUBLE_EQ(document["gains"]["default"].get<double>(), 2);
  EXPECT_DOUBLE_EQ(document["gains"]["median"].get<double>(), 1.5);
  const double best = document["best"]["half_width"].get<double>() / 0.002,
               other = document["default"]["half_width"].get<double>() / 0.004;
  EXPECT_DOUBLE_EQ(document["gains"]["default_half_width"].get<double>(), 2 * std::hypot(best, other));
  EXPECT_EQ(document["gain"], nlohmann::json({{"value", document["gains"]["default"]},
                                              {"half_width", document["gains"]["default_half_width"]}}));
  EXPECT_EQ(document["better"]["time"], -1);
  EXPECT_EQ(document["top"].size(), 3u);
}

TEST_F(Report, AModelledQuantityOfAMeasuredSessionIsNotCalledMeasured) {
  {
    Store store = Store::open(folder_ / "s.db");
    Measurement m;
    m.quantities["energy"].value = 2;
    m.quantities["corrected_energy"].value = 1.9;
    m.quantities["corrected_energy"].provenance = Provenance::modelled;
    store.add(store.session(SessionKey{.problem = "p"}, {"x"}, "energy", "{}", "{}"), {1}, m);
  }
  write_report(folder_ / "s.db", 0, folder_ / "report.html");
  const auto quantities = data()["best"]["quantities"];
  EXPECT_EQ(quantities["energy"]["provenance"], "measured");
  EXPECT_EQ(quantities["corrected_energy"]["provenance"], "modelled");
}

TEST_F(Report, TellsFailuresInTheirWordsAndApart) {
  const auto file = folder_ / "failures.db";
  {
    Store store = Store::open(file);
    const auto session = store.session(SessionKey{.problem = "p"}, {"x"}, "time", R"({"configurations": 40})", "{}");
    const auto add = [&](int x, Status status, const std::string& description) {
      Measurement m;
      m.status = status;
      m.message = description;
      if (usable(status)) m.quantities["time"].value = 0.01;
      store.add(session, {x}, m);
    };
    add(1, Status::ok, "");
    add(2, Status::compile_error, "kernel.cl:3: error: 12 is too many");
    add(3, Status::compile_error, "kernel.cl:7: error: no such type");
    add(4, Status::compile_error, "kernel.cl:3: error: 16 is too many");
    add(5, Status::not_converged, "");
  }
  const auto summary = write_report(file, 0, folder_ / "report.html");
  EXPECT_EQ(summary.configurations, 5u) << "that were measured";
  EXPECT_EQ(summary.space, 40u) << "that there are";
  const auto document = data();
  ASSERT_EQ(document["failures"].size(), 2u) << "different words are different failures";
  EXPECT_EQ(document["failures"][0]["count"], 2) << "different numbers are not";
  EXPECT_EQ(document["failures"][0]["message"], "kernel.cl:3: error: 12 is too many");
  EXPECT_EQ(document["failures"][1]["message"], "kernel.cl:7: error: no such type");
  EXPECT_EQ(document["rows"], 5);
  EXPECT_EQ(document["shown"], 5);
  EXPECT_EQ(document["space"], 40);
  EXPECT_EQ(document["statuses"], nlohmann::json({{"ok", 1}, {"compile_error", 3}, {"not_converged", 1}}));
  EXPECT_FALSE(document["environment"].contains("configurations"));
  const auto& results = document["results"];
  const auto status = [&](int row) {
    return results["status"]["names"][results["status"]["of"][row].get<std::size_t>()];
  };
  EXPECT_EQ(status(0), "ok");
  EXPECT_EQ(status(1), "compile_error");
  EXPECT_EQ(status(4), "not_converged");
  EXPECT_TRUE(results["columns"]["time"][1].is_null());
  // nothing improved: the axis stays near the line
  EXPECT_GT(document["convergence_range"][0], 0.005);
  EXPECT_LT(document["convergence_range"][1], 0.02);
}

TEST_F(Report, APageThatCannotBeWrittenIsNotBegun) {
  EXPECT_THROW(write_report(folder_ / "cache.json", 0, "/dev/full"), UserError);
  EXPECT_THROW(write_report(folder_ / "cache.json", 0, folder_), UserError) << "a folder";
}

TEST_F(Report, IsOnePageThatLoadsNothing) {
  write_report(folder_ / "cache.json", 0, folder_ / "report.html");
  const std::string text = page();
  EXPECT_THAT(text, Not(HasSubstr("<script src")));
  EXPECT_THAT(text, Not(HasSubstr("<link rel=\"stylesheet")));
  EXPECT_THAT(text, Not(HasSubstr("https://")));
  EXPECT_THAT(text, Not(HasSubstr("@DATA@")));
  EXPECT_THAT(text, Not(HasSubstr("@SCRIPT@")));
  EXPECT_THAT(text, Not(HasSubstr("@NONCE@")));
  EXPECT_EQ(data()["provenance"], "replayed");
}

/// Twelve configurations of a clock and a tile: slower clocks save energy; a second recording has no energy.
std::string trade_off_cache(bool with_energy) {
  nlohmann::ordered_json cache = nlohmann::ordered_json::parse(kCache);
  cache["tune_params_keys"] = {"tile", "core_clock_mhz"};
  cache["tune_params"] = {{"tile", {1, 2, 4}}, {"core_clock_mhz", {600, 900, 1200, 1500}}};
  cache["cache"] = nlohmann::ordered_json::object();
  for (const int tile : {1, 2, 4})
    for (const int clock : {600, 900, 1200, 1500}) {
      const double time = 1e6 / (tile * clock), power = 50 + 1e-7 * clock * clock * clock;
      nlohmann::ordered_json row{{"tile", tile}, {"core_clock_mhz", clock}, {"time", time}};
      if (with_energy) row["energy"] = 1e-3 * time * power;
      for (const char* cost : {"compile_time", "verification_time", "benchmark_time"}) row[cost] = 0;
      cache["cache"][std::to_string(tile) + "," + std::to_string(clock)] = row;
    }
  return cache.dump();
}

TEST_F(Report, AnalysesTheTradeOff) {
  std::ofstream(folder_ / "energy.json") << trade_off_cache(true);
  write_report(folder_ / "energy.json", 0, folder_ / "report.html");
  const auto analysis = data()["analysis"];
  const auto& hull = analysis["quadrants"];
  EXPECT_EQ(hull["fastest"]["configuration"], nlohmann::json({{"tile", 4}, {"core_clock_mhz", 1500}}));
  EXPECT_EQ(hull["most_efficient"]["configuration"], nlohmann::json({{"tile", 4}, {"core_clock_mhz", 600}}));
  EXPECT_NEAR(hull["speed_lost"].get<double>(), 0.6, 1e-9);
  EXPECT_NEAR(hull["energy_saved"].get<double>(), 1 - (71.6 / 600) / (387.5 / 1500), 1e-6);
  EXPECT_GE(analysis["hull"].size(), 4u);
  // Faster and more efficient than tile=1, core_clock_mhz=600: tile=4, and tile=2 but at its highest clock.
  EXPECT_EQ(analysis["against_default"],
            nlohmann::json({{"of", 11}, {"both", 7}, {"only_faster", 4}, {"only_more_efficient", 0}}));
  for (const auto& correlation : analysis["influences"]) {
    EXPECT_NE(correlation["name"], "time") << "it goes with itself";
    EXPECT_NE(correlation["name"], "energy");
  }
  ASSERT_EQ(analysis["centrality"]["objectives"].size(), 2u);
  EXPECT_EQ(analysis["centrality"]["objectives"]["time"]["minima"], 1);
}

TEST_F(Report, TopIsInTheObjectivesOwnOrder) {
  // the fastest stands last: until it is seen everything holds its bound
  const auto file = stored(folder_ / "bound.db", "energy subject to time <= 1.1 * best(time)",
                           {{2, 10}, {1.05, 40}, {1.08, 30}, {1.5, 5}, {1, 50}});
  write_report(file, 0, folder_ / "report.html");
  const auto document = data();
  std::vector<double> energies;
  for (const auto& row : document["top"]) energies.push_back(row["quantities"]["energy"]["value"]);
  EXPECT_EQ(energies, (std::vector<double>{30, 40, 50, 5, 10}));
  for (std::size_t i = 0; i < energies.size(); ++i)
    EXPECT_EQ(document["top"][i].contains("violates_condition"), i > 2) << i;
}

TEST_F(Report, OfAFrontNothingElseIsAmongTheBest) {
  const auto file = stored(folder_ / "front.db", "pareto(time, energy)", {{3, 3}, {1, 5}, {4, 4}, {2, 2}});
  const auto summary = write_report(file, 0, folder_ / "report.html");
  EXPECT_EQ(summary.failed, 0u);
  const auto document = data();
  std::vector<double> times;
  for (const auto& row : document["top"]) times.push_back(row["quantities"]["time"]["value"]);
  EXPECT_EQ(times, (std::vector<double>{1, 2}));
}

TEST_F(Report, WithoutEnergyNothingIsSaidOfIt) {
  std::ofstream(folder_ / "time.json") << trade_off_cache(false);
  write_report(folder_ / "time.json", 0, folder_ / "report.html");
  const auto analysis = data()["analysis"];
  EXPECT_TRUE(analysis["quadrants"].is_null());
  ASSERT_FALSE(analysis["influences"].empty());
  EXPECT_FALSE(analysis["influences"][0].contains("efficiency"));
  EXPECT_EQ(analysis["centrality"]["objectives"].size(), 1u);
  write_report(folder_ / "cache.json", 0, folder_ / "report.html");
  EXPECT_TRUE(data()["analysis"].is_null());  // three configurations are no space
}

TEST_F(Report, LocalMinimaAreCountedOnlyWhereTheWholeSpaceIsStored) {
  for (const int configurations : {12, 1000}) {
    const auto file = folder_ / (std::to_string(configurations) + ".db");
    {
      Store store = Store::open(file);
      const auto session =
          store.session(SessionKey{.problem = "p"}, {"x"}, "time",
                        nlohmann::json({{"configurations", configurations}, {"driver", ""}}).dump(), "{}");
      for (int x = 1; x <= 12; ++x) {
        Measurement m;
        m.quantities["time"].value = 1e-3 * x;
        store.add(session, {x}, m);
      }
    }
    write_report(file, 0, folder_ / "report.html");
    EXPECT_EQ(data()["analysis"]["centrality"]["objectives"].empty(), configurations != 12);
    EXPECT_FALSE(data()["analysis"]["influences"].empty());
    const auto analysis = analysis_document(analyse_recording(load_recording(file), {}));
    EXPECT_EQ(analysis["centrality"]["objectives"].empty(), configurations != 12) << "the verb analyse, too";
    EXPECT_EQ(analysis["notes"].empty(), configurations == 12);
  }
}

// Top-level functions of a page's script become properties of the window, and "top" cannot be one.
TEST_F(Report, TheScriptKeepsItsNamesToItself) {
  write_report(folder_ / "cache.json", 0, folder_ / "report.html");
  EXPECT_THAT(page(), HasSubstr("<script>(() => {\n'use strict';"));
}

TEST_F(Report, DataCannotEndTheScriptElement) {
  write_report(folder_ / "cache.json", 0, folder_ / "report.html");
  EXPECT_EQ(data()["problem"], "k</script>");
  EXPECT_THAT(page(), HasSubstr("<title>ergotune: k&lt;/script&gt;</title>"));
}

TEST_F(Report, SaysWhatIsWrong) {
  EXPECT_THROW(write_report(folder_ / "none.db", 0, folder_ / "report.html"), UserError);
  EXPECT_THROW(write_report(folder_ / "cache.json", 0, folder_ / "no/such/folder/report.html"), UserError);
}

}  // namespace
}  // namespace ergotune
