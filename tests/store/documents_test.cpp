// What is exported stands in the file, all of it; what others write is read, all of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "store/formats/export.hpp"
#include "store/sqlite/store.hpp"
#include "store/written_files.hpp"

namespace ergotune {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

/// Each number differs from all others, so that no two can change places.
ResultSet everything() {
  ResultSet results;
  results.problem = "add";
  results.kernel = "vector_add";
  results.device = "GPU, \"new\"";
  results.environment = R"({"driver": "550"})";
  results.constants = {{"problem_size_x", 4096}, {"problem_size_y", 2}, {"n", 7}};
  results.metrics = {{"gflops", Expression::parse("1/time"), "GFLOP/s"}};
  results.provenance = Provenance::simulated;
  Parameter block, half;
  block.name = "block";
  block.values = {64, 128, 256};
  half.name = "half";
  half.values = {false, true};
  results.parameters = {block, half};
  Measurement good;
  good.quantities["time"] = {2.5e-3, 1e-5, 3, "", "", Provenance::simulated};
  good.quantities["energy"] = {0.5, 0.01, 4, "", "powersensor3:0", Provenance::simulated};
  good.quantities["power"] = {200, 2, 5, "", "nvml:0", Provenance::simulated};
  good.quantities["core_clock"] = {1.405e9, 0, 6, "", "", Provenance::simulated};
  good.quantities["memory_clock"] = {1.215e9, 0, 7, "", "", Provenance::simulated};
  good.quantities["core_voltage"] = {0.75, 0, 8, "", "", Provenance::simulated};
  good.quantities["temperature"] = {NAN, 0, 9, "", "", Provenance::simulated};
  good.metrics = {{"gflops", 400}, {"nothing", INFINITY}};
  good.times = {2.5e-3, 3.5e-3};
  good.compile_seconds = 0.5;
  good.verify_seconds = 0.25;
  good.measure_seconds = 2;
  good.tuner_seconds = 0.125;
  good.finished_at = 1700000003.5;
  Measurement failed;
  failed.status = Status::unsupported;
  failed.message = "too, \"large\"\nby far";
  Measurement late = good;
  late.status = Status::not_converged;
  late.quantities["time"].value = 4e-3;
  results.rows = {{1, {64, false}, good},
                  {2, {128, true}, failed},
                  {3, {256, true}, failed},
                  {4, {256, true}, late},
                  {5, {64, false}, late}};
  return results;
}

TEST(Documents, ACacheSaysAllOfIt) {
  json cache = json::parse(to_kernel_tuner_cache(everything()));
  for (auto& entry : cache["cache"]) entry.erase("ergotune");  // export_test.cpp reads it
  const json expected = json::parse(R"({
    "device_name": "GPU, \"new\"", "kernel_name": "vector_add", "problem_size": [4096, 2], "tune_params_keys": ["block", "half"],
    "tune_params": {"block": [64, 128, 256], "half": [false, true]}, "objective": "time", "provenance": "simulated",
    "ergotune": {"problem": "add", "default": "64,False", "objective": "time", "direction": "min"},
    "cache": {
      "64,False": {"block": 64, "half": false, "time": 2.5, "ps_energy": 0.5, "nvml_power": 200.0, "core_freq": 1405.0, "mem_freq": 1215.0,
        "gr_voltage": 750.0, "times": [2.5, 3.5], "gflops": 400.0, "compile_time": 500.0, "verification_time": 250.0, "benchmark_time": 2000.0,
        "strategy_time": 0, "framework_time": 125.0, "timestamp": "2023-11-14 22:13:23.500000+00:00"},
      "128,True": {"block": 128, "half": true, "time": "InvalidConfig", "__error__": "InvalidConfig", "error_message": "too, \"large\"\nby far",
        "compile_time": 0.0, "verification_time": 0.0, "benchmark_time": 0.0, "strategy_time": 0, "framework_time": 0.0},
      "256,True": {"block": 256, "half": true, "time": 4.0, "ps_energy": 0.5, "nvml_power": 200.0, "core_freq": 1405.0, "mem_freq": 1215.0,
        "gr_voltage": 750.0, "times": [2.5, 3.5], "gflops": 400.0, "compile_time": 500.0, "verification_time": 250.0, "benchmark_time": 2000.0,
        "strategy_time": 0, "framework_time": 125.0, "timestamp": "2023-11-14 22:13:23.500000+00:00"}}})");
  EXPECT_EQ(cache, expected) << cache.dump(1);
}

TEST(Documents, T4SaysAllOfIt) {
  json t4 = json::parse(to_t4_results(everything()));
  for (auto& measurement : t4["results"][0]["measurements"]) measurement.erase("ergotune");
  EXPECT_EQ(
      t4["metadata"],
      json::parse(
          R"({"timeunit": "milliseconds", "kernel": "vector_add", "device": "GPU, \"new\"", "provenance": "simulated",
              "ergotune": {"problem": "add", "default": "64,False", "objective": "time", "direction": "min"}})"));
  ASSERT_EQ(t4["results"].size(), 5u);
  const json expected = json::parse(
      R"({"timestamp": "2023-11-14 22:13:23.500000+00:00", "configuration": {"block": 64, "half": false},
    "times": {"compilation": 500.0, "benchmark": 2000.0, "framework": 125.0, "search_algorithm": 0, "validation": 250.0, "runtimes": [2.5, 3.5]},
    "invalidity": "correct", "correctness": 1, "objectives": ["time"], "measurements": [
      {"name": "core_clock", "value": 1.405e9, "unit": "Hz"}, {"name": "core_voltage", "value": 0.75, "unit": "V"},
      {"name": "energy", "value": 0.5, "unit": "J"}, {"name": "memory_clock", "value": 1.215e9, "unit": "Hz"},
      {"name": "power", "value": 200.0, "unit": "W"}, {"name": "time", "value": 2.5, "unit": "ms"}, {"name": "gflops", "value": 400.0, "unit": "GFLOP/s"}]})");
  EXPECT_EQ(t4["results"][0], expected) << t4["results"][0].dump(1);
  EXPECT_EQ(t4["results"][1]["correctness"], 1) << "it was not wrong, it did not run";
  EXPECT_FALSE(t4["results"][1].contains("timestamp"));
  ResultSet results = everything();
  results.rows.resize(1);
  for (const auto& [status, word] : {std::pair{Status::ok, "correct"},
                                     {Status::not_converged, "correct"},
                                     {Status::compile_error, "compile"},
                                     {Status::timeout, "timeout"},
                                     {Status::wrong_result, "correctness"},
                                     {Status::unsupported, "constraints"},
                                     {Status::launch_error, "runtime"},
                                     {Status::runtime_error, "runtime"}}) {
    results.rows[0].measurement.status = status;
    const json one = json::parse(to_t4_results(results))["results"][0];
    EXPECT_EQ(one["invalidity"], word);
    EXPECT_EQ(one["correctness"], status == Status::wrong_result ? 0 : 1);
  }
}

class Reading : public WrittenFiles {};

TEST_F(Reading, T4InEveryUnitAndWord) {
  const Recording r = read("k_dev.T4.json", R"({"metadata": {"timeunit": "microseconds", "device": "D"}, "results": [
    {"configuration": {"b": 1}, "invalidity": "correct", "objectives": ["nvml_energy"],
     "times": {"compilation_time": 3e6, "validation_time": 2e6, "framework_time": 1e6, "runtimes": [4e6, "x", 6e6]},
     "measurements": [{"name": "nvml_energy", "value": 7, "unit": "mJ"}, {"name": "w", "value": 3, "unit": "mW"}, {"name": "v", "value": 4, "unit": "mV"},
       {"name": "us", "value": 5, "unit": "us"}, {"name": "ns", "value": 6, "unit": "ns"}, {"name": "mhz", "value": 8, "unit": "MHz"}, {"name": "ms", "value": 9, "unit": "ms"},
       {"name": "s", "value": 10, "unit": "s"}, {"name": "j", "value": 11, "unit": "J"}, {"name": "hz", "value": 12, "unit": "Hz"}, {"name": "core_freq", "value": 13, "unit": ""},
       {"name": "volt", "value": 14, "unit": "V"}, {"name": "watt", "value": 15, "unit": "W"}, {"name": "ps_powers", "value": [10, 20, 30], "unit": "W"}, {"name": "x", "value": [2, 4]},
       {"name": "none", "value": [], "unit": "W"}]},
    {"configuration": {"b": 2}, "invalidity": "timeout"}, {"configuration": {"b": 3}, "invalidity": "constraints"}, {"configuration": {"b": 4}, "invalidity": "compile"},
    {"configuration": {"b": 5}, "invalidity": "correctness"}, {"configuration": {"b": 6}, "invalidity": "runtime"}]})");
  EXPECT_THAT(r.statuses, ElementsAre(Status::ok, Status::timeout, Status::unsupported, Status::compile_error,
                                      Status::wrong_result, Status::runtime_error));
  EXPECT_EQ(r.name, "k_dev");
  EXPECT_EQ(r.device, "D");
  EXPECT_EQ(r.objective.text, "energy");
  const Measurement m = r.measurement(0);
  EXPECT_DOUBLE_EQ(m.quantities.at("time").value, 5);
  EXPECT_EQ(m.quantities.at("time").n, 2);
  EXPECT_NEAR(m.quantities.at("time").standard_error, 1, 1e-6);
  EXPECT_DOUBLE_EQ(m.quantities.at("energy").value, 7e-3);
  EXPECT_DOUBLE_EQ(m.quantities.at("core_clock").value, 13e6);
  EXPECT_DOUBLE_EQ(m.quantities.at("power").value, 20);
  EXPECT_EQ(m.quantities.at("power").n, 3);
  EXPECT_NEAR(m.quantities.at("power").standard_error, 10 / std::sqrt(3.0), 1e-5);
  for (const auto& [name, value] : {std::pair{"w", 3e-3},
                                    {"v", 4e-3},
                                    {"us", 5e-6},
                                    {"ns", 6e-9},
                                    {"mhz", 8e6},
                                    {"ms", 9e-3},
                                    {"s", 10.0},
                                    {"j", 11.0},
                                    {"hz", 12.0},
                                    {"volt", 14.0},
                                    {"watt", 15.0},
                                    {"x", 3.0}})
    EXPECT_DOUBLE_EQ(m.metrics.at(name), value) << name;
  EXPECT_FALSE(m.metrics.count("none") + m.quantities.count("none"));
  EXPECT_DOUBLE_EQ(m.compile_seconds, 3);
  EXPECT_DOUBLE_EQ(m.verify_seconds, 2);
  EXPECT_DOUBLE_EQ(m.tuner_seconds, 1);
  EXPECT_DOUBLE_EQ(m.measure_seconds, 10);
  for (const auto& [unit, seconds] : {std::pair{"nanoseconds", 1e-9},
                                      {"microseconds", 1e-6},
                                      {"milliseconds", 1e-3},
                                      {"miliseconds", 1e-3},
                                      {"seconds", 1.0},
                                      {"s", 1.0}}) {
    const Recording one = read(
        "u.T4.json",
        std::string(R"({"metadata": {"timeunit": ")") + unit +
            R"("}, "results": [{"configuration": {"b": 1}, "invalidity": "correct", "measurements": [{"name": "time", "value": 2, "unit": ""}]}]})");
    EXPECT_DOUBLE_EQ(one.measurement(0).quantities.at("time").value, 2 * seconds) << unit;
  }
  EXPECT_THAT(complaint("e.T4.json", R"({"results": []})"), HasSubstr("no results"));
  EXPECT_THAT(complaint("f.T4.json", R"({"results": [{"configuration": {"b": 1}}]})"), HasSubstr("T4 file"));
}

TEST_F(Reading, CsvOfAnyHand) {
  const Recording r = read("some.thing.csv",
                           "b,kind,real,flag,status,time,time_standard_error,time_n,energy,own,own_n,other_n,"
                           "provenance,compile_seconds,verify_seconds,measure_seconds,tuner_seconds,message\r\n"
                           "16,a,0.5,True,ok,0.5,0.125,3,7,100,4,9,measured,1,2,3,4,\r\n"
                           "\r\n"
                           "32,\"b,\nc\",1.5,false,timeout,,,,,,,,,,,,,\"said \"\"no\"\"\"\r\n"
                           "64,true,2,False,ok,1,");
  EXPECT_EQ(r.name, "some");
  ASSERT_EQ(r.size(), 2u);
  ASSERT_EQ(r.warnings.size(), 1u);
  EXPECT_THAT(r.warnings[0], HasSubstr("after 2 rows"));
  EXPECT_EQ(r.configuration(0), (Configuration{16, "a", 0.5, true}));
  EXPECT_EQ(r.configuration(1), (Configuration{32, "b,\nc", 1.5, false}));
  EXPECT_EQ(r.messages.size(), 1u);
  EXPECT_EQ(r.messages.at(1), "said \"no\"");
  const Measurement m = r.measurement(0);
  EXPECT_DOUBLE_EQ(m.quantities.at("time").value, 0.5);
  EXPECT_DOUBLE_EQ(m.quantities.at("time").standard_error, 0.125);
  EXPECT_EQ(m.quantities.at("time").n, 3);
  EXPECT_DOUBLE_EQ(m.quantities.at("energy").value, 7);
  EXPECT_DOUBLE_EQ(m.quantities.at("own").value, 100);
  EXPECT_EQ(m.quantities.at("own").n, 4);
  EXPECT_DOUBLE_EQ(m.metrics.at("other_n"), 9);
  EXPECT_DOUBLE_EQ(m.compile_seconds, 1);
  EXPECT_DOUBLE_EQ(m.verify_seconds, 2);
  EXPECT_DOUBLE_EQ(m.measure_seconds, 3);
  EXPECT_DOUBLE_EQ(m.tuner_seconds, 4);
  EXPECT_EQ(m.quantities.at("time").provenance, Provenance::replayed) << "measured, but not by this program";
  EXPECT_TRUE(r.measurement(1).quantities.empty());
  EXPECT_EQ(r.measurement(1).compile_seconds, 0);
  const Recording bare = read("bare.csv", "b,registers,time\n1,40,2\n");
  EXPECT_EQ(bare.configuration(0), (Configuration{1, 40})) << "what comes before the first that is measured";
  EXPECT_DOUBLE_EQ(bare.measurement(0).quantities.at("time").value, 2);
  EXPECT_THAT(complaint("w.csv", "b,status\n\"a\nb\",ok\n1\n"), HasSubstr("w.csv:4:"));
  EXPECT_THAT(complaint("x.csv", "b,status\n1,ok\n1,fine\n"), HasSubstr("x.csv:3:"));
  for (const char* text : {"status\nok\n", "status,b\nok,1\n", "b,c\n1,2\n"})
    EXPECT_THAT(complaint("y.csv", text), HasSubstr("recording")) << text;
}

TEST_F(Reading, T1BesideItIsUsedWhereItFits) {
  const auto t1 = [&](const std::string& name, const std::string& parameter, const std::string& condition) {
    std::ofstream(folder_.path() / name) << R"({"ConfigurationSpace": {"TuningParameters": [{"Name": ")" + parameter +
                                                R"(", "Type": "int", "Values": "[1, 2]", "Default": 2}],
      "Conditions": [{"Expression": ")" + condition +
                                                R"(", "Parameters": [")" + parameter + R"("]}]}})";
  };
  const char* rows = "b,status,time\n1,ok,2\n";
  EXPECT_FALSE(read("gemm_A.csv", rows).restrictions_known);
  t1("gemm.T1.json", "b", "b < 9");
  const Recording fits = read("gemm_A.csv", rows);
  ASSERT_EQ(fits.restrictions.size(), 1u);
  EXPECT_EQ(fits.parameters[0].default_value, std::nullopt) << "2 was never measured";
  EXPECT_EQ(read("gemm_A.csv", "b,status,time\n2,ok,2\n").parameters[0].default_value, Value(2));
  t1("gemm_A.T1.json", "b", "b < 8");
  EXPECT_EQ(read("gemm_A.csv", rows).restrictions.at(0).expression.text(), "b < 8") << "the longest name";
  t1("gemm_A.T1.json", "c", "c < 8");
  const Recording other = read("gemm_A.csv", rows);
  EXPECT_FALSE(other.restrictions_known);
  EXPECT_THAT(other.warnings, ElementsAre(HasSubstr("other parameters")));
  std::ofstream(folder_.path() / "gemm_A.T1.json") << "{\"ConfigurationSpace\": 3";
  EXPECT_THAT(read("gemm_A.csv", rows).warnings, ElementsAre(HasSubstr("cannot be read")));
}

TEST(Sessions, AndTheirRunsSayAllOfIt) {
  const TemporaryFolder folder;
  Store store = Store::open(folder.path() / "s.db");
  SessionKey identity{"gemm", "{}", "opencl:0:0", "driver 1", "cold", Provenance::modelled};
  const auto id = store.session(identity, {"x", "y"}, "time", R"({"cpu": "none"})", "{}");
  SessionInfo info = store.session_info(id).value();
  EXPECT_EQ(info.problem + " " + info.device + " " + info.conditions + " " + info.identity_hash,
            "gemm opencl:0:0 cold " + identity.hash());
  EXPECT_EQ(info.provenance, Provenance::modelled);
  EXPECT_THAT(info.parameter_names, ElementsAre("x", "y"));
  EXPECT_EQ(info.objective.text, "time");
  EXPECT_FALSE(info.objective.direction);
  EXPECT_EQ(info.runs, 0u);
  EXPECT_EQ(info.rows, 0u);
  EXPECT_EQ(info.worked_at, info.created_at);
  EXPECT_GT(info.created_at, 1.7e9);
  std::vector<std::int64_t> runs;
  for (const auto direction :
       {std::optional<Direction>(), std::optional(Direction::maximise), std::optional(Direction::minimise)}) {
    RunInfo run;
    run.objective = {"gflops", direction};
    run.strategy = "auto";
    run.plan = "two stages";
    run.seed = 18446744073709551615u;
    run.phase = "searching";
    runs.push_back(store.begin_run(id, run));
    info = store.session_info(id).value();
    EXPECT_EQ(info.objective.text, "gflops");
    EXPECT_EQ(info.objective.direction, direction);
    EXPECT_EQ(info.runs, runs.size());
  }
  store.set_phase(runs[1], "confirming");
  store.set_confirmed(runs[1], 3);
  store.end_run(runs[1], "the budget is spent");
  const auto list = store.runs(id);
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].phase + list[0].ended, "searching");
  EXPECT_EQ(list[0].ended_at, 0);
  EXPECT_EQ(list[0].confirmed, 0);
  EXPECT_EQ(list[1].id, runs[1]);
  EXPECT_EQ(list[1].session, id);
  EXPECT_EQ(list[1].strategy + list[1].plan, "autotwo stages");
  EXPECT_EQ(list[1].seed, 18446744073709551615u);
  EXPECT_EQ(list[1].phase, "confirming");
  EXPECT_EQ(list[1].confirmed, 3);
  EXPECT_EQ(list[1].ended, "the budget is spent");
  EXPECT_GE(list[1].ended_at, list[1].started_at);
  EXPECT_EQ(list[1].objective.direction, Direction::maximise);
  store.note(id, "topology", R"({"boards": 2})");
  EXPECT_EQ(json::parse(store.environment(id)), json::parse(R"({"cpu": "none", "topology": {"boards": 2}})"));
}

TEST(Sessions, WhatEndedIsNotUnfinishedAndRowsSayWhereTheyAreFrom) {
  const TemporaryFolder folder;
  Store store = Store::open(folder.path() / "s.db");
  const auto id = store.session({"gemm", "{}", "d", "i", "c", Provenance::measured}, {"x"}, "time", "{}", "{}");
  const Configuration first{1}, second{2};
  store.record_start(id, first);
  store.record_start(id, second, &first);
  EXPECT_THAT(store.unfinished(id), ElementsAre(second));
  store.withdraw(id, second);
  EXPECT_TRUE(store.unfinished(id).empty());
  StoredRow row;
  row.configuration = first;
  row.run = 7;
  row.stage = "plan/one";
  row.gpu = "GPU-1";
  for (const RowKind kind : {RowKind::search, RowKind::confirmation, RowKind::confirmed, RowKind::reference}) {
    row.kind = kind;
    row.measurement.compile_seconds = 1;
    row.measurement.verify_seconds = 2;
    row.measurement.measure_seconds = 3;
    store.add(id, row);
    const StoredRow back = store.rows(id).back();
    EXPECT_EQ(back.kind, kind);
    EXPECT_EQ(back.run, 7);
    EXPECT_EQ(back.stage + back.gpu, "plan/oneGPU-1");
    EXPECT_EQ(back.measurement.compile_seconds, 1);
    EXPECT_EQ(back.measurement.verify_seconds, 2);
    EXPECT_EQ(back.measurement.measure_seconds, 3);
  }
  EXPECT_EQ(store.session_info(id)->rows, 4u);
  auto rows = store.rows(id);
  rows[1].measurement.metrics = {{"gflops", 5}};
  rows[1].measurement.metric_errors = {{"gflops", 0.5}};
  store.set_metrics({rows[1]});
  EXPECT_EQ(store.rows(id)[1].measurement.metrics.at("gflops"), 5);
  EXPECT_EQ(store.rows(id)[1].measurement.metric_errors.at("gflops"), 0.5);
  EXPECT_TRUE(store.rows(id)[0].measurement.metrics.empty());
}

}  // namespace
}  // namespace ergotune
