// show, import and export, driven from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "integration/support/command.hpp"
#include "store/sqlite/store.hpp"

namespace ergotune {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kCsv =
    "bx,ty,fixed,status,time,time_standard_error,time_n,energy,gflops,message\n"
    "32,1,7,ok,0.004,0.0001,10,2.0,100,\n"
    "64,1,7,ok,0.002,0.00001,10,3.0,200,\n"
    "64,2,7,compile_error,,,,,,\"kernel.cl:3: error: too\nmuch shared memory\"\n"
    "128,1,7,ok,0.003,0.0001,10,3.5,150,\n";

class Results : public testing::Test {
 protected:
  Results() { folder_.write("add.csv", kCsv); }
  ProcessResult ergotune(std::vector<std::string> arguments) { return test::ergotune(folder_, std::move(arguments)); }
  json document(std::vector<std::string> arguments) {
    arguments.push_back("--json");
    const ProcessResult result = ergotune(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return test::json_of(result);
  }
  TemporaryFolder folder_;
};

TEST_F(Results, ImportedResultsAreShown) {
  const json imported = document({"import", "add.csv", "--store", "s.db", "--device", "Some GPU"});
  EXPECT_EQ(imported["rows"], 4);
  EXPECT_EQ(imported["added"], 4);
  EXPECT_EQ(document({"import", "add.csv", "--store", "s.db", "--device", "Some GPU"})["added"], 0) << "all known";
  const json shown = document({"show", "s.db", "--failures"});
  EXPECT_EQ(shown["problem"], "add");
  EXPECT_EQ(shown["device"], "Some GPU");
  EXPECT_EQ(shown["provenance"], "replayed");
  EXPECT_EQ(shown["statuses"], json({{"ok", 3}, {"compile_error", 1}}));
  EXPECT_EQ(shown["best"]["configuration"], json({{"bx", 64}, {"ty", 1}, {"fixed", 7}}));
  EXPECT_EQ(shown["best"]["quantities"]["time"]["n"], 10);
  ASSERT_EQ(shown["top"].size(), 3u);
  EXPECT_EQ(shown["top"][1]["configuration"]["bx"], 128);
  EXPECT_EQ(shown["sessions"].size(), 1u);
  EXPECT_EQ(document({"show", "s.db", "--objective", "max gflops", "--top", "1"})["objective"]["direction"], "max");
  EXPECT_EQ(document({"show", "s.db", "--objective", "energy"})["best"]["configuration"]["bx"], 32);
  EXPECT_EQ(document({"show", "s.db", "--objective", "pareto(time, energy)"})["top"].size(), 2u);
  for (const char* format : {"header", "wisdom"}) {
    const auto exported = [&](const char* objective) {
      return ergotune({"export", "s.db", "--format", format, "--objective", objective}).err;
    };
    EXPECT_THAT(exported("pareto(time, energy)"), HasSubstr("Pareto front of 2 points"));
    EXPECT_THAT(exported("energy"), testing::Not(HasSubstr("Pareto")));
  }
}

TEST_F(Results, AnImportKeepsWhatWasConfirmed) {
  folder_.write("c.csv",
                "b,status,time,time_standard_error,time_n,objective,confirmed,searched\n"
                "1,ok,0.002,0.0001,9,min time,3,0.0018\n2,ok,0.0019,0.0001,9,min time,0,\n");
  document({"import", "c.csv", "--store", "c.db"});
  const json best = document({"show", "c.db"})["best"];
  EXPECT_EQ(best["configuration"]["b"], 1) << "the confirmed one leads";
  EXPECT_EQ(best["confirmation_repeats"], 3);
  EXPECT_EQ(document({"import", "c.csv", "--store", "c.db"})["added"], 0);
}

/// The lines from the one that contains `text` to the next empty one.
std::string block_at(const std::string& printed, const std::string& text) {
  const std::size_t at = printed.find(text);
  return at == std::string::npos ? "" : printed.substr(at, printed.find("\n\n", at) - at);
}

const std::string kCopy = R"(name = "copy"
[constants]
ROWS = 512
COLS = 2
[parameters]
turn = [3, 1, 2]
[kernel]
function = "work"
arguments = [ { name = "a", type = "float32", count = "ROWS" },
              { name = "b", type = "float32", count = "ROWS", access = "write" } ]
[kernel.source.c]
text = '''
void work(const float* a, float* b) {
  for (int r = 0; r < 40 * turn; ++r) for (int i = 0; i < ROWS; ++i) b[i] = 2 * a[i] + COLS;
}
'''
)";

TEST_F(Results, ShowPrintsTheBestAsTuneDid) {
  folder_.write("copy.toml", kCopy);
  const ProcessResult tuned =
      ergotune({"tune", "copy.toml", "--device", "host", "--store", "s.db", "--max-seconds", "0.05"});
  const std::string best = block_at(tuned.out, "Best configuration");
  EXPECT_THAT(best, testing::AllOf(HasSubstr("verified"), HasSubstr("default"), HasSubstr("confirmed")));
  EXPECT_EQ(block_at(ergotune({"show", "s.db"}).out, "Best configuration"), best);
  const json shown = document({"show", "s.db"});
  if (shown["gain"]["half_width"].is_number()) {  // the default may be the best
    EXPECT_THAT(best, HasSubstr("x ± "));
    EXPECT_GT(shown["gain"]["half_width"].get<double>(), 0);
  }
}

TEST_F(Results, SessionsOfSeveralSizesCanBeDistinguished) {
  folder_.write("copy.toml", kCopy);
  ASSERT_EQ(ergotune({"tune", "copy.toml", "--device", "sim:a100", "--set", "ROWS=512,1024", "--store", "s.db", "-q"})
                .exit_code,
            0);
  const json shown = document({"show", "s.db", "--session", "1"});
  EXPECT_EQ(shown["differing_constants"], json({{"ROWS", 512}})) << "COLS is the same in both";
  EXPECT_EQ(shown["sessions"][1]["differing_constants"], json({{"ROWS", 1024}}));
  EXPECT_THAT(ergotune({"show", "s.db", "--sessions"}).out, HasSubstr("ROWS=1024"));
  EXPECT_THAT(ergotune({"show", "s.db", "--session", "1"}).out, HasSubstr(", ROWS=512"));
  EXPECT_THAT(ergotune({"show", "s.db"}).out, testing::AllOf(HasSubstr("ROWS (512, 1024)"), HasSubstr("--session")));
  EXPECT_THAT(ergotune({"show", "s.db", "--session", "2"}).out, testing::Not(HasSubstr("--session")));
  EXPECT_THAT(ergotune({"report", "s.db", "--session", "1", "-o", "-"}).out,
              HasSubstr("\"differing_constants\":{\"ROWS\":512}"));
  EXPECT_THAT(ergotune({"compare", "s.db:1", "s.db:2"}).out,
              testing::AllOf(HasSubstr("ROWS=512"), HasSubstr("ROWS=1024")));
  EXPECT_EQ(document({"compare", "s.db:1", "s.db:2"})["sessions"][1]["differing_constants"], json({{"ROWS", 1024}}));
  const ProcessResult latest = ergotune({"export", "s.db", "--format", "header"});
  EXPECT_THAT(latest.out, HasSubstr("ROWS = 1024"));
  EXPECT_THAT(latest.err, HasSubstr("ROWS=512")) << "left out";
  EXPECT_EQ(ergotune({"export", "s.db", "--format", "header", "--session", "2"}).err, "");
}

TEST_F(Results, SimulatedGainsAreMarkedAndTheNextStepCompiles) {
  const ProcessResult tuned = ergotune(
      {"tune", ERGOTUNE_SOURCE_DIR "/examples/gemm/gemm.toml", "--device", "sim:a100", "--budget", "9", "--no-store"});
  for (const char* other : {"than the default", "than the median"}) {
    const std::size_t at = tuned.out.find(other);
    ASSERT_NE(at, std::string::npos) << tuned.out;
    EXPECT_THAT(tuned.out.substr(at, tuned.out.find('\n', at) - at), HasSubstr("simulated"));
  }
  EXPECT_THAT(tuned.out, HasSubstr("--profile a100 --compile"));
}

TEST_F(Results, TablesMarkMeasurementsWithoutAnIntervalAndThoseThatStoppedEarly) {
  {
    Store store = Store::open(folder_.path() / "m.db");
    const auto session = store.session(SessionKey{.problem = "p"}, {"x"}, "time", "{}", "{}");
    Measurement wide, stopped;
    wide.quantities["time"] = Quantity{.value = 1, .standard_error = 1, .n = 2};
    store.add(session, {Value(1)}, wide);
    stopped.quantities["time"] = Quantity{.value = 2, .standard_error = 0.01, .n = 20};
    stopped.warnings = {"stopped early: its interval lies above the best so far"};
    store.add(session, {Value(2)}, stopped);
  }
  const std::string table = block_at(ergotune({"show", "m.db"}).out, "Top 2");
  EXPECT_THAT(table, testing::AllOf(HasSubstr(" 1 s ±?"), HasSubstr("\n  ±? "))) << "with a footnote";
  EXPECT_THAT(table, testing::AllOf(HasSubstr("  2!  2 s"), HasSubstr("\n  ! "))) << "with a footnote";
}

TEST_F(Results, AReportHasATableForBrowsersWithoutJavaScript) {
  const std::string page = ergotune({"report", "add.csv", "-o", "-"}).out;
  const std::size_t at = page.find("<noscript>");
  ASSERT_NE(at, std::string::npos);
  const std::string table = page.substr(at, page.find("</noscript>") - at);
  EXPECT_THAT(table, testing::AllOf(HasSubstr("<td>bx=64, ty=1, fixed=7</td><td>0.002 s</td>"), HasSubstr("bx=32")));
  EXPECT_THAT(table, HasSubstr("replayed")) << "where the values come from";
}

TEST_F(Results, EveryFormatIsWritten) {
  ASSERT_EQ(ergotune({"import", "add.csv", "--store", "s.db"}).exit_code, 0);
  for (const std::string format : {"kt", "t4", "csv"}) {
    ASSERT_EQ(document({"export", "s.db", "--format", format, "-o", "out." + format})["rows"], 4) << format;
    const json shown = document({"show", "out." + format});
    EXPECT_EQ(shown["rows"], 4) << format;
    EXPECT_EQ(shown["best"]["configuration"], json({{"bx", 64}, {"ty", 1}, {"fixed", 7}})) << format;
    EXPECT_DOUBLE_EQ(shown["best"]["quantities"]["time"]["value"], 0.002) << format;
  }
  const std::string wisdom = ergotune({"export", "s.db", "--format", "wisdom"}).out;
  EXPECT_EQ(json::parse(wisdom.substr(wisdom.find('\n')))["configuration"]["bx"], 64) << wisdom;
  EXPECT_THAT(ergotune({"export", "s.db", "--format", "header", "--objective", "energy"}).out,
              HasSubstr("#define bx 32"));
}

// Its restrictions name device.* properties, which only the device it was tuned on knows.
TEST_F(Results, AStoredSessionIsAnalysedWithoutItsDevice) {
  ASSERT_EQ(ergotune({"tune", ERGOTUNE_SOURCE_DIR "/examples/gemm/gemm.toml", "--device", "sim:a100", "--budget", "40",
                      "--objective", "energy", "--strategy", "random", "--store", "g.db", "--quiet"})
                .exit_code,
            0);
  const json analysed = document({"analyse", "g.db"});
  EXPECT_EQ(analysed["problem"], "gemm");
  EXPECT_EQ(analysed["configurations"], 40);
  EXPECT_FALSE(analysed["influences"].empty());
  EXPECT_TRUE(analysed["centrality"]["objectives"].empty()) << "40 of the space do not show its local minima";
  EXPECT_GE(analysed["pareto"].size(), 1u);
}

// A script must not take half a document for a whole one.
TEST_F(Results, AFullStandardOutputIsAFailure) {
  for (const std::string arguments : {"show add.csv --json", "show add.csv", "export add.csv --format csv"}) {
    ProcessOptions options;
    options.folder = folder_.path();
    const ProcessResult result =
        run_process({"/bin/sh", "-c", ERGOTUNE_BINARY_DIR "/ergotune " + arguments + " > /dev/full"}, options);
    EXPECT_NE(result.exit_code, 0) << arguments;
    EXPECT_THAT(result.err, HasSubstr("No space left")) << arguments;
  }
  EXPECT_EQ(ergotune({"export", "add.csv", "--format", "csv", "-o", "/dev/full"}).exit_code, 2);
}

TEST_F(Results, MistakesAreSaidInOneLine) {
  const auto says = [&](const std::vector<std::string>& arguments, const std::string& message) {
    const ProcessResult result = ergotune(arguments);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_EQ(result.out, "") << message;
    EXPECT_THAT(result.err, HasSubstr(message));
  };
  says({"show", "missing.db"}, "missing.db: there is no store here");
  says({"show"}, "ergotune.db: there is no store here");
  says({"show", "add.csv", "--objective", "tme"}, "tme");
  says({"import", "missing.json"}, "missing.json: the file does not exist");
  says({"export", "add.csv", "--format", "kt", "-o", "no/folder/x.json"},
       "no/folder/x.json: cannot be written (its folder is not there)");
  says({"export", "add.csv", "--format", "xml"}, "xml");
  says({"export", "add.csv", "--format", "csv", "--json"}, "-o FILE");
}

}  // namespace
}  // namespace ergotune
