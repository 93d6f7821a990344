#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <fstream>

#include "base/process/process.hpp"
#include "ergotune/problem_file.hpp"
#include "parameters.hpp"
#include "store/formats/export.hpp"
#include "store/result_set.hpp"
#include "store/sqlite/store.hpp"
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

// An interval hangs on the degrees of freedom of its error, which n alone does not say.
TEST_F(ExportTest, EveryFormatKeepsIntervals) {
  ResultSet results = some_results();
  results.rows[0].measurement.quantities["time"] = {2.5e-3, 1e-5, 3, "", "", Provenance::measured, 2};
  results.rows[0].measurement.quantities["energy"] = {0.5, 1e-2, 40, "", "", Provenance::measured, 3.25};
  results.rows[0].measurement.quantities["power"] = {200, 4, 40, "", "", Provenance::measured, 0};
  results.rows[0].measurement.metric_errors["gflops"] = 7;
  results.rows[0].measurement.metric_degrees["gflops"] = 2;
  results.rows[0].measurement.metrics["of_python"] = 3;
  results.rows[0].measurement.metric_errors["of_python"] = NAN;
  const std::string text = to_csv(results);
  EXPECT_THAT(text, HasSubstr(",energy_degrees"));
  EXPECT_THAT(text, testing::Not(HasSubstr(",time_degrees"))) << "n - 1";
  StoredRow row = results.rows[0];
  for (int i = 0; i < 2000; ++i) {  // more than one block of a cache
    row.configuration[0] = 1000 + i;
    results.rows.push_back(row);
  }
  const Measurement& before = row.measurement;
  for (const Recording& recording :
       {read("a.csv", text), read("a.json", to_kernel_tuner_cache(results)), read("b.json", to_t4_results(results))}) {
    for (const std::size_t at : {std::size_t{0}, recording.size() - 1}) {
      const Measurement after = recording.measurement(at);
      if (!usable(after.status)) continue;
      for (const char* name : {"time", "energy", "power", "gflops"})
        EXPECT_NEAR(after.half_width(name) / before.half_width(name), 1, 1e-6) << recording.file << name;
      EXPECT_TRUE(std::isnan(after.half_width("of_python"))) << "unknown, as before";
    }
  }
}

TEST_F(ExportTest, EveryFormatKeepsFailures) {
  ResultSet results = some_results();
  results.rows[2].measurement.message = "7 elements differ";
  for (const Recording& recording : {read("a.csv", to_csv(results)), read("a.json", to_kernel_tuner_cache(results)),
                                     read("b.json", to_t4_results(results))}) {
    for (std::size_t row = 0; row < results.rows.size(); ++row) {
      EXPECT_EQ(recording.measurement(row).status, results.rows[row].measurement.status) << recording.file;
      EXPECT_EQ(recording.measurement(row).message, results.rows[row].measurement.message) << recording.file;
    }
  }
}

TEST_F(ExportTest, SimulatedValuesStaySimulatedInEveryFormat) {
  ResultSet results = some_results();
  results.provenance = Provenance::simulated;
  for (const Recording& recording : {read("a.csv", to_csv(results)), read("a.json", to_kernel_tuner_cache(results)),
                                     read("b.json", to_t4_results(results))}) {
    EXPECT_EQ(result_set(recording).provenance, Provenance::simulated) << recording.file;
    EXPECT_EQ(recording.measurement(0).quantities.at("time").provenance, Provenance::simulated) << recording.file;
    EXPECT_EQ(recording.device, results.device) << recording.file;
  }
  results.provenance = Provenance::measured;
  EXPECT_EQ(read("c.csv", to_csv(results)).measurement(0).quantities.at("time").provenance, Provenance::replayed);
}

TEST_F(ExportTest, AnExportedSessionHasTheSameWinner) {
  ResultSet results = some_results();
  results.goal = {"gflops", Direction::maximise, {}};
  StoredRow confirmed = results.rows.front();
  confirmed.rounds = 7;
  confirmed.confirmed_for = results.goal;
  confirmed.searched = confirmed.measurement;
  confirmed.searched->metrics["gflops"] = 500;
  confirmed.measurement.warnings = {"stopped early: it can no longer win", "asked 1410 MHz, ran 1275 MHz"};
  StoredRow lucky = results.rows.front();
  lucky.configuration = {128, false, 1410};
  lucky.measurement.metrics["gflops"] = 600;
  results.rows = {confirmed, lucky};
  for (std::size_t p = 0; p < results.parameters.size(); ++p)
    results.parameters[p].default_value = lucky.configuration[p];
  for (const Recording& recording : {read("a.csv", to_csv(results)), read("a.json", to_kernel_tuner_cache(results)),
                                     read("b.json", to_t4_results(results))}) {
    const ResultSet read = result_set(recording);
    EXPECT_EQ(read.goal, results.goal) << recording.file;
    EXPECT_EQ(read.rows[0].confirmed_for, results.goal) << recording.file;
    EXPECT_EQ(read.rows[0].rounds, 7) << recording.file;
    ASSERT_TRUE(read.rows[0].searched) << recording.file;
    EXPECT_EQ(read.rows[0].searched->value("gflops"), 500) << recording.file;
    EXPECT_FALSE(read.rows[1].confirmed_for) << recording.file;
    EXPECT_FALSE(is_default(read.parameters, read.rows[0].configuration)) << recording.file;
    EXPECT_TRUE(is_default(read.parameters, read.rows[1].configuration)) << recording.file;
  }
  EXPECT_EQ(read("a.csv", to_csv(results)).measurement(0).warnings, confirmed.measurement.warnings);
  EXPECT_EQ(read("b.json", to_t4_results(results)).name, "add") << "the problem, not its function";
}

TEST_F(ExportTest, ADamagedStatementOfTheSessionCostsNoRows) {
  const Recording recording =
      read("a.json", R"({"kernel_name": "k", "tune_params_keys": ["b"], "tune_params": {"b": [1]},
    "ergotune": {"objective": 3}, "cache": {
"1": {"b": 1, "time": 2}}})");
  EXPECT_EQ(recording.size(), 1u);
  EXPECT_EQ(recording.warnings.size(), 1u);
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
  best.confirmation_repeats = 5;
  best.probability_best = 0.98;
  best.gain = 1.82;
  best.default_configuration = "block_size_x=64 */";
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
  EXPECT_THAT(text, HasSubstr("confirmed in 5 "));
  EXPECT_THAT(text, HasSubstr("98 %"));
  EXPECT_THAT(text, HasSubstr("1.82"));
  EXPECT_THAT(text, HasSubstr("block_size_x=64 * /"));
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

BestResult best_of(const std::string& problem, const std::string& device, std::int64_t block) {
  BestResult best;
  best.problem = problem;
  best.device = device;
  best.objective = "energy";
  Parameter code, clock, flag;
  code.name = "block";
  clock.name = "clock";
  clock.kind = ParameterKind::core_clock_mhz;
  flag.name = "flag";
  best.parameters = {code, clock, flag};
  best.configuration = {block, 1410, true};
  best.measurement.quantities["time"].provenance = Provenance::measured;
  return best;
}

TEST(Headers, SayOfEachDeviceWhatIsBestThere) {
  BestResult second = best_of("2 adds*/", "gpu #2\n(new)", 128);
  second.measurement.quantities["energy"].provenance = Provenance::replayed;
  const std::string header = to_c_header({best_of("2 adds*/", "--GPU  one--", 64), second,
                                          best_of("2 adds*/", "gpu #2 new", 256), best_of("other", "gpu 3", 512)});
  EXPECT_THAT(header, HasSubstr("#ifndef PROBLEM_2_ADDS_TUNED_H\n#define PROBLEM_2_ADDS_TUNED_H\n"));
  const std::string blocks = header.substr(header.find("#if "));
  EXPECT_EQ(blocks,
            "#if defined(TARGET_GPU_ONE)\n"
            "/* --GPU  one--: best for energy (measured); not confirmed; run at clock = 1410 */\n#define block "
            "64\n#define flag 1\n"
            "#elif defined(TARGET_GPU_2_NEW)\n"
            "/* gpu #2 (new): best for energy (replayed); energy 0 J; run at clock = 1410 */\n#define block "
            "128\n#define flag 1\n"
            "#else /* default */\n"
            "/* --GPU  one--: best for energy (measured); not confirmed; run at clock = 1410 */\n#define block "
            "64\n#define flag 1\n"
            "#endif\n\n#endif /* PROBLEM_2_ADDS_TUNED_H */\n");
  EXPECT_THAT(to_c_header({second}), testing::Not(HasSubstr("TARGET_"))) << "there is nothing to choose";
  EXPECT_THAT(to_c_header({}), HasSubstr("#ifndef PROBLEM_TUNED_H\n"));
  EXPECT_THAT(to_c_header({best_of("+", "-", 1)}), HasSubstr("#ifndef UNKNOWN_TUNED_H\n"));
}

TEST(Headers, GiveNoShareForAnIntervalThatIsWiderThanItsValue) {
  BestResult best = best_of("add", "gpu", 64);
  Quantity& energy = best.measurement.quantities["energy"];
  energy.value = 2;
  energy.n = 100;
  energy.standard_error = 0.01;
  EXPECT_THAT(to_c_header({best}), HasSubstr("+-1.0 %"));
  energy.standard_error = 3;
  EXPECT_THAT(to_c_header({best}), testing::AllOf(HasSubstr("wider"), testing::Not(HasSubstr("+-"))));
}

TEST(Headers, SayThatTheyHaveAPointOfAFront) {
  BestResult best = best_of("add", "gpu", 64);
  EXPECT_THAT(to_c_header({best}), testing::Not(HasSubstr("Pareto")));
  best.front = 7;
  EXPECT_THAT(to_c_header({best}), HasSubstr("Pareto front of 7 points"));
  best.measurement.quantities["time"] = Quantity{.value = 0.25, .standard_error = 0, .n = 9};
  best.measurement.quantities["energy"] = Quantity{.value = 3, .standard_error = 0, .n = 9};
  for (const char* objective : {"pareto(time, energy)", "energy; time < 1"}) {
    best.objective = objective;
    EXPECT_THAT(to_c_header({best}), testing::AllOf(HasSubstr("time 0.25 s"), HasSubstr("energy 3 J"))) << objective;
  }
}

TEST(Headers, NameTheParametersOfSeveralKernelsInC) {
  BestResult best = best_of("add", "GPU", 64);
  best.parameters[0].name = "sq.BLOCK";
  EXPECT_THAT(to_c_header({best}), HasSubstr("#define sq_BLOCK 64\n"));
}

// A macro whose value is a compiler option would not compile where it is used.
TEST(Headers, SayForWhichConstantsAndHowToCompile) {
  BestResult best = best_of("add", "GPU", 64);
  best.constants = {{"COLS", 3}, {"ROWS", 512}};
  best.parameters.emplace_back().name = "LEVEL";
  best.configuration.emplace_back(std::string("-O3"));
  const std::string header = to_c_header({best});
  EXPECT_THAT(header, HasSubstr("/* GPU, COLS = 3, ROWS = 512: "));
  EXPECT_THAT(header, testing::Not(HasSubstr("#define LEVEL")));
  EXPECT_LT(header.find("-O3"), header.find("*/", header.find("GPU")));
}

TEST(StoresByName, MayHoldAnyLetter) {
  for (const char* name : {"a?b.db", "a#b.db", "a%41b.db", "a b.db", "\u00e4.db", "file:x.db"}) {
    const TemporaryFolder folder;
    const auto file = folder.path() / name;
    { Store::open(file).session(SessionKey{.problem = "p"}, {"x"}, "time", "{}", "{}"); }
    EXPECT_TRUE(is_store(file)) << name;
    EXPECT_EQ(Store::open(file, true).sessions().size(), 1u) << name;
  }
}

std::string complaint(const Store& store, std::int64_t session) {
  return complaint_about([&] { pick_session(store, session); });
}

TEST(SessionsOfAStore, TheOneThatHasRowsIsMeant) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "s.db";
  Store store = Store::open(file);
  EXPECT_EQ(complaint(store, 0), file.string() + ": this store has no sessions yet; \"ergotune tune\" makes one");
  const auto begin = [&](const char* problem) {
    return store.session(SessionKey{.problem = problem, .device = problem}, {"x"}, "time", "{}", "{}");
  };
  const auto full = begin("full"), older = begin("older");
  begin("empty");
  EXPECT_EQ(complaint(store, 9), file.string() + ": this store has no session 9; it has 1, 2, 3");
  store.add(older, {1}, {});
  store.add(full, {1}, {});
  EXPECT_EQ(pick_session(store).id, older) << "the later of two nobody has worked on since";
  store.begin_run(full, {});
  EXPECT_EQ(pick_session(store).id, full) << "the last that was worked on and has rows";
}

TEST(SessionsOfAStore, SayHowTheProblemStandsNow) {
  const TemporaryFolder folder;
  Store store = Store::open(folder.path() / "s.db");
  const auto session = [&](const SessionKey& identity, const char* environment, const char* document) {
    return store.session(identity, {"x"}, "time", environment, document);
  };
  const SessionKey identity{.problem = "p"};
  const auto other = session({.problem = "q", .device = "q"}, R"({"cpu":"old"})", R"({"n":1})");
  const auto first = session(identity, R"({"cpu":"old"})", R"({"n":1})");
  EXPECT_EQ(session(identity, R"({"cpu":"new"})", R"({"n":2})"), first);
  EXPECT_EQ(store.document(first) + store.environment(first), R"({"n":2}{"cpu":"new"})");
  EXPECT_EQ(store.document(other) + store.environment(other), R"({"n":1}{"cpu":"old"})");
}

ResultSet one_result() {
  ResultSet results;
  results.problem = results.kernel = "k";
  results.device = "Größe";
  Parameter block = test::listed("block", {64, 128});
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

TEST_F(StoredResults, AStoredMeasurementIsReadAsItWasStored) {
  const auto id = session("{}");
  Measurement m;
  m.quantities["time"] = {0.5, 0.1, 4, "device events", "", Provenance::measured};
  m.quantities["energy"] = {0.5, 0.1, 4, "regression", "nvml:0", Provenance::modelled};
  m.finished_at = 1703155482.25;
  store_.add(id, {1, 2}, m);
  m.quantities["energy"] = {0.5, 0.1, 4, "counter", "rapl", Provenance::measured};
  store_.add(id, {2, 2}, m);
  const Recording recording = load_recording(store_.file(), id);
  const Measurement first = recording.measurement(0), second = recording.measurement(1);
  EXPECT_EQ(first.quantities.at("time").provenance, Provenance::measured);
  EXPECT_EQ(first.quantities.at("time").method, "device events");
  EXPECT_EQ(first.quantities.at("energy").provenance, Provenance::modelled);
  EXPECT_EQ(second.quantities.at("energy").provenance, Provenance::measured);
  EXPECT_EQ(second.quantities.at("energy").sensor, "rapl");
  EXPECT_EQ(first.finished_at, m.finished_at);
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

TEST(FailureGroups, NumbersAndScratchFoldersMakeNoKindOfTheirOwn) {
  FailureGroups groups;
  groups.add(0, Status::compile_error, "/tmp/ergotune-host-aB3xY/kernel.c:3: error: 3 is odd");
  groups.add(1, Status::wrong_result, "c[5] is 3.25, not 7");
  groups.add(2, Status::wrong_result, "c[17] is 81, not 7.5");
  groups.add(3, Status::runtime_error, "c[17] is 81, not 7.5");
  groups.add(4, Status::compile_error, "/tmp/ergotune-host-Zz9/kernel.c:3: error: 5 is odd");
  groups.add(5, Status::wrong_result, "c[170] is 8, not 7");
  groups.add(6, Status::wrong_result, "c[1] is 2e+30, not 1e-05");
  groups.add(7, Status::wrong_result, "c[1] is 5e, not 1e+");
  const auto list = groups.list();
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0].count, 4u);
  EXPECT_EQ(list[0].first, 1u);
  EXPECT_EQ(list[0].message, "c[5] is 3.25, not 7") << "the first one's, whole";
  EXPECT_EQ(list[1].count, 2u);
  EXPECT_EQ(list[2].status, Status::runtime_error) << "the same words of another status";
  EXPECT_EQ(list[3].first, 7u) << "a letter after a number is no exponent";
}

TEST(FailureGroups, PoclsScratchFilesMakeNoKindOfTheirOwn) {
  FailureGroups groups;
  groups.add(0, Status::compile_error, "error: add.cl:1:9 <Spelling=/cache/tempfile_vkHAHJ.cl:2:11>: expected ')'");
  groups.add(1, Status::compile_error, "error: add.cl:1:9 <Spelling=/cache/tempfile_NQ2byS.cl:2:11>: expected ')'");
  groups.add(2, Status::compile_error, "error: add.cl:1:9 <Spelling=/cache/tempfile_4f1q7h.cl:2:11>: expected ';'");
  ASSERT_EQ(groups.list().size(), 2u);
  EXPECT_EQ(groups.list()[0].count, 2u);
}

TEST(TellingLine, IsTheFirstThatSaysError) {
  EXPECT_EQ(most_informative_line(
                "kernel.c: In function 'f':\nkernel.c:3:9: error: 'n' undeclared\n   3 | n\nkernel.c:4: error: b"),
            "kernel.c:3:9: error: 'n' undeclared");
  EXPECT_EQ(most_informative_line("k.F90:4:7:\n\n    4 | x = 1\nError: Symbol 'x' has no type"),
            "Error: Symbol 'x' has no type");
  EXPECT_EQ(most_informative_line("\n  signal 11\nmore"), "signal 11");
  EXPECT_EQ(most_informative_line(" \t signal 11 \t"), "signal 11");
  EXPECT_EQ(most_informative_line(""), "");
  EXPECT_EQ(most_informative_line("\n \n"), "");
}

}  // namespace
}  // namespace ergotune
