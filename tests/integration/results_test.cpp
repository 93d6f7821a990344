// show, import and export, driven from outside.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "integration/support/command.hpp"

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
  EXPECT_EQ(analysed["centrality"]["objectives"]["energy"]["configurations"], analysed["usable"]);
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
