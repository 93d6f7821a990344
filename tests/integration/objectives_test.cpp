// Every kind of objective, tuned live: tune, show, report and export tell the same winner with the same
// numbers and the same direction (tests/python/test_result_document.py: Python as well).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

#include "integration/support/command.hpp"
#include "patience.hpp"

namespace ergotune::test {
namespace {

using Json = nlohmann::json;

/// Time grows with `turn` and not with W; rate, which names the parameter W, is best at the largest W and least turn.
constexpr const char* kProblem = R"toml(
name = "objectives"
{objective}
[constants]
N = 4096
[parameters]
W = [1, 8]
turn = [1, 4]
[metrics]
rate = { expression = "N * W / time", unit = "1/s" }
[kernel]
function = "work"
arguments = [
  { name = "a", type = "float32", count = "N" },
  { name = "b", type = "float32", count = "N", access = "write" },
]
[kernel.launch]
global = ["64"]
block = ["64"]
[kernel.source.c]
text = '''
void work(const float* a, float* b) {
  for (int i = 0; i < N; ++i) b[i] = a[i];
  for (volatile int k = 0; k < 20000 * turn; ++k) {}
}
'''
[kernel.source.opencl]
text = '''
kernel void work(global const float* a, global float* b) {
  for (int i = get_global_id(0); i < N; i += 64) {
    float x = a[i];
    for (int k = 0; k < 40 * turn; ++k) x = x * 0.999f + 0.5f;
    b[i] = a[i] + 0.0f * x;
  }
}
'''
)toml";

struct Case {
  const char* name;
  /// What the problem file says, and what an option would.
  const char* written;
  const char* option;
  const char* direction;
  bool needs_energy = false;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.written; }

const Case kCases[] = {
    {"time", "objective = \"time\"", "time", "min"},
    {"energy", "objective = \"energy\"", "energy", "min", true},
    {"metric_as_text", "objective = \"max rate\"", "max rate", "max"},
    {"metric_as_table", "objective = { expression = \"rate\", direction = \"max\" }", "max rate", "max"},
    {"weighted", "objective = \"0.5 * time + 100 / rate\"", "0.5 * time + 100 / rate", "min"},
    {"energy_delay", "objective = \"energy * time\"", "energy * time", "min", true},
    {"constrained", "objective = \"time subject to rate >= 0.5 * best(rate)\"",
     "time subject to rate >= 0.5 * best(rate)", "min"},
    {"constrained_energy", "objective = \"energy subject to time <= 1.5 * best(time)\"",
     "energy subject to time <= 1.5 * best(time)", "min", true},
    {"lexicographic", "objective = \"lexicographic(time within 30%, max rate)\"",
     "lexicographic(time within 30%, max rate)", "min"},
    {"pareto", "objective = \"pareto(time, max rate)\"", "pareto(time, max rate)", "min"},
    {"pareto_energy", "objective = \"pareto(time, energy)\"", "pareto(time, energy)", "min", true},
};

std::string problem_with(const std::string& objective) {
  std::string text = kProblem;
  const std::string mark = "{objective}";
  return text.replace(text.find(mark), mark.size(), objective);
}

/// Where a problem is tuned. A sensor of constant 40 W stands for one where this machine has none: energies
/// are then measured with it, by the same path as with any other.
struct Place {
  const char* name;
  const char* device;
  std::vector<std::string> options;
};
void PrintTo(const Place& place, std::ostream* out) { *out << place.device; }

const std::vector<std::string> kMeter{"--sensor", "command:while :; do echo 40; sleep 0.005; done", "--energy-budget",
                                      "0.2"};

std::vector<std::string> tune_command(const Place& place, const Case& c) {
  std::vector<std::string> command{"tune",    "p.toml", "--device",    place.device, "--strategy", "brute_force",
                                   "--store", "s.db",   "--precision", "0.3",        "--json",     "--quiet"};
  if (c.needs_energy) command.insert(command.end(), place.options.begin(), place.options.end());
  return command;
}

/// The document that the page carries.
Json report_data(const std::filesystem::path& page) {
  std::ifstream in(page);
  std::string html{std::istreambuf_iterator<char>(in), {}};
  const std::string open = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = html.find(open);
  if (begin == std::string::npos) return nullptr;
  std::string data = html.substr(begin + open.size());
  data.resize(data.find("</script>"));
  return Json::parse(data, nullptr, false)["document"];
}

/// The row of a CSV file that has this configuration: column -> cell.
std::map<std::string, std::string> csv_row(const std::filesystem::path& file, const Json& configuration) {
  std::ifstream in(file);
  std::string line;
  std::vector<std::string> names;
  const auto cells = [](const std::string& text) {
    std::vector<std::string> list;
    std::istringstream stream(text);
    for (std::string cell; std::getline(stream, cell, ',');) list.push_back(cell);
    return list;
  };
  if (std::getline(in, line)) names = cells(line);
  std::map<std::string, std::string> found;
  int matches = 0;
  while (std::getline(in, line)) {
    const auto values = cells(line);
    std::map<std::string, std::string> row;
    for (std::size_t i = 0; i < std::min(names.size(), values.size()); ++i) row[names[i]] = values[i];
    bool same = true;
    for (const auto& [name, value] : configuration.items()) same = same && row[name] == value.dump();
    if (!same) continue;
    found = row;
    ++matches;
  }
  EXPECT_EQ(matches, 1) << "rows of " << configuration << " in the CSV";
  return found;
}

std::set<std::string> configurations_of(const Json& list) {
  std::set<std::string> texts;
  for (const Json& entry : list) texts.insert(entry["configuration"].dump());
  return texts;
}

class Objectives : public ::testing::TestWithParam<std::tuple<Place, Case>> {
 protected:
  const Place& place() const { return std::get<0>(GetParam()); }
  const Case& the_case() const { return std::get<1>(GetParam()); }
  void SetUp() override {
    if (std::string(place().device) == "opencl" && !has_opencl()) GTEST_SKIP() << "no OpenCL device";
    folder.write("p.toml", problem_with(the_case().written));
  }
  Json run(std::vector<std::string> command) {
    const ProcessResult result = ergotune(folder, std::move(command));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return json_of(result);
  }
  TemporaryFolder folder;
};

TEST_P(Objectives, AreReportedAlikeByEveryVerb) {
  Json tuned;
  with_patience("what runs beside it can make a launch's energy drift", [&] {
    for (const char* file : {"s.db", "s.db-wal", "s.db-shm"}) std::filesystem::remove(folder.path() / file);
    tuned = run(tune_command(place(), the_case()));
    ASSERT_TRUE(tuned["best"].is_object()) << tuned.dump(1);
  });
  ASSERT_TRUE(tuned["best"].is_object());
  const Json& best = tuned["best"];
  EXPECT_EQ(tuned["objective"]["direction"], the_case().direction);
  EXPECT_EQ(tuned["evaluated"], 4);
  ASSERT_TRUE(best["metrics"].contains("rate")) << best;
  const double rate = best["metrics"]["rate"], time = best["quantities"]["time"]["value"];
  EXPECT_NEAR(rate, 4096 * best["configuration"]["W"].get<double>() / time, 1e-9 * rate);
  const std::string provenance = std::string(place().device).rfind("sim:", 0) == 0 ? "simulated" : "measured";
  EXPECT_EQ(best["quantities"]["time"]["provenance"], provenance);
  if (the_case().needs_energy) {
    ASSERT_TRUE(best["quantities"].contains("energy")) << best;
    EXPECT_EQ(best["quantities"]["energy"]["provenance"], provenance);
  }

  const Json shown = run({"show", "s.db", "--json"});
  EXPECT_EQ(shown["objective"], tuned["objective"]);
  EXPECT_EQ(shown["best"]["configuration"], best["configuration"]);
  EXPECT_EQ(shown["best"]["quantities"], best["quantities"]);
  EXPECT_EQ(shown["best"]["metrics"], best["metrics"]);
  EXPECT_EQ(shown["best"]["objective"], best["objective"]);
  if (std::string(the_case().name).rfind("pareto", 0) == 0) {
    EXPECT_EQ(configurations_of(shown["top"]), configurations_of(tuned["top"])) << "the front";
  }

  run({"report", "s.db", "-o", "r.html", "--json"});
  const Json data = report_data(folder.path() / "r.html");
  ASSERT_TRUE(data.is_object()) << "the page carries no data";
  EXPECT_EQ(data["objective"]["direction"], the_case().direction);
  EXPECT_EQ(data["best"]["configuration"], best["configuration"]);
  EXPECT_EQ(data["best"]["objective"], best["objective"]);
  EXPECT_EQ(data["best"]["quantities"]["time"]["value"], best["quantities"]["time"]["value"]);

  run({"export", "s.db", "--format", "csv", "-o", "s.csv", "--json"});
  const auto row = csv_row(folder.path() / "s.csv", best["configuration"]);
  EXPECT_EQ(std::stod(row.at("time")), best["quantities"]["time"]["value"].get<double>());
  EXPECT_EQ(std::stod(row.at("rate")), best["metrics"]["rate"].get<double>());
  // nor does it have the metric's unit, which says that less of the weighted sum is better
  const std::string option = the_case().option;
  const Json from_csv =
      run({"show", "s.csv", "--objective", option.starts_with("0.5") ? "min " + option : option, "--json"});
  // A table does not say what was confirmed: there, one that was lucky once may stand before it.
  if (from_csv["best"]["configuration"] != best["configuration"]) {
    const double first = from_csv["best"]["objective"].get<double>(), confirmed = best["objective"].get<double>();
    EXPECT_TRUE(std::string(the_case().direction) == "max" ? first >= confirmed : first <= confirmed)
        << from_csv["best"];
  }

  // What is stored is not measured again, and a resumed session tells the same.
  auto again = tune_command(place(), the_case());
  again.push_back("--no-confirm");
  const Json resumed = run(again);
  EXPECT_EQ(resumed["evaluated"], 0);
  EXPECT_EQ(resumed["objective"], tuned["objective"]);
  EXPECT_EQ(resumed["best"]["configuration"], best["configuration"]);
  EXPECT_EQ(resumed["best"]["quantities"], best["quantities"]);
}

std::string name_of(const ::testing::TestParamInfo<std::tuple<Place, Case>>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(Every, Objectives,
                         ::testing::Combine(::testing::Values(Place{"host", "host", kMeter}),
                                            ::testing::ValuesIn(kCases)),
                         name_of);
INSTANTIATE_TEST_SUITE_P(Some, Objectives,
                         ::testing::Combine(::testing::Values(Place{"opencl", "opencl", kMeter},
                                                              Place{"simulated", "sim:a100", {}}),
                                            ::testing::Values(kCases[3], kCases[7])),
                         name_of);

// Defect: the objective of the first run stayed that of the session, and its direction was lost.
TEST(ObjectiveOfASession, IsThatOfItsLastRun) {
  TemporaryFolder folder;
  folder.write("p.toml", problem_with("objective = \"time\""));
  const Place host{"host", "host", {}};
  auto command = tune_command(host, kCases[0]);
  command.push_back("--no-confirm");
  EXPECT_EQ(json_of(ergotune(folder, command))["evaluated"], 4);
  folder.write("p.toml", problem_with("objective = { expression = \"rate\", direction = \"max\" }"));
  const auto tuned = json_of(ergotune(folder, command));
  EXPECT_EQ(tuned["evaluated"], 0) << "the objective does not change results";
  EXPECT_EQ(tuned["best"]["configuration"], Json({{"W", 8}, {"turn", 1}}));
  const auto shown = json_of(ergotune(folder, {"show", "s.db", "--json"}));
  EXPECT_EQ(shown["objective"], tuned["objective"]);
  EXPECT_EQ(shown["objective"]["direction"], "max");
  EXPECT_EQ(shown["best"]["configuration"], tuned["best"]["configuration"]);
  ASSERT_EQ(ergotune(folder, {"report", "s.db", "-o", "r.html"}).exit_code, 0);
  const Json data = report_data(folder.path() / "r.html");
  EXPECT_EQ(data["objective"]["direction"], "max");
  EXPECT_EQ(data["best"]["configuration"], tuned["best"]["configuration"]);
}

}  // namespace
}  // namespace ergotune::test
