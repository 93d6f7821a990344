// [program] of a problem file: what it says, and what is said of mistakes in it.
#include "problem/program.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "ergotune/problem_file.hpp"
#include "problem/document/problem_document.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

struct ProgramFileTest : ::testing::Test {
  const TemporaryFolder temporary;
  const std::filesystem::path folder = temporary.path();
  void write(const std::string& name, const std::string& text) const { temporary.write(name, text); }
  Problem parse(const std::string& text) const { return parse_problem(text, folder / "p.toml"); }
  std::string mistake(const std::string& program, const std::string& rest = "") const {
    try {
      parse("name = \"p\"\n[parameters]\nTILE = [1, 2]\n[program]\n" + program + "\n" + rest);
    } catch (const UserError& error) {
      const std::string words = error.what();
      return words.substr(folder.string().size() + 1);
    }
    return "no mistake";
  }
};

constexpr const char* kWhole = R"toml(
name = "whole"
objective = "max rate"
[constants]
N = 100
[parameters]
TILE = [1, 2]
FLAGS = ["-O2", "-O3"]
[program]
command = ["./app", "--tile={{TILE}}", "{{run}}/in.txt", 7]
environment = { OMP_NUM_THREADS = "{{TILE*2}}", LEVEL = 3 }
folder = "{{build}}"
build = [["cc", "{{FLAGS}}", "{{folder}}/app.c"], ["strip", "app"]]
build_files = { "config.h" = "#define N {{N}}\n" }
files = { "in.txt" = { from = "in.template" } }
sources = ["app.c"]
output = { rate = 'rate: ([0-9.]+)', time = 'took (\S+) s' }
check = { command = ["cmp", "{{run}}/out", "{{folder}}/expected"], pattern = 'ok$', file = "out", reference = "expected", relative_tolerance = 1e-6 }
exit_status = { 3 = "wrong_result", 77 = "unsupported" }
time_limit = 12.5
)toml";

TEST_F(ProgramFileTest, SaysAllThatThereIsToSay) {
  write("app.c", "int main() {}\n");
  write("expected", "1\n");
  write("in.template", "tile = {{TILE}}\n");
  const Problem problem = parse(kWhole);
  ASSERT_TRUE(problem.program);
  const Program& program = *problem.program;
  const auto texts = [](const std::vector<Template>& list) {
    std::vector<std::string> words;
    for (const Template& text : list) words.push_back(text.text());
    return words;
  };
  EXPECT_THAT(texts(program.command), ElementsAre("./app", "--tile={{TILE}}", "{{run}}/in.txt", "7"));
  EXPECT_EQ(program.environment.at("LEVEL").text(), "3");
  ASSERT_EQ(program.build.size(), 2u);
  EXPECT_THAT(texts(program.build[1]), ElementsAre("strip", "app"));
  ASSERT_EQ(program.files.size(), 1u);
  EXPECT_EQ(program.files[0].text.text(), "tile = {{TILE}}\n");
  EXPECT_EQ(program.output.at("rate"), "rate: ([0-9.]+)");
  EXPECT_EQ(program.check_pattern, "ok$");
  EXPECT_EQ(program.compare->relative_tolerance, 1e-6);
  EXPECT_EQ(program.exit_status.at(77), "unsupported");
  EXPECT_EQ(program.time_limit, 12.5);
  EXPECT_EQ(problem.verification.kind, Verification::Kind::none);
}

TEST_F(ProgramFileTest, SurvivesTheWayToAStore) {
  write("app.c", "int main() {}\n");
  write("expected", "1\n");
  write("in.template", "tile = {{TILE}}\n");
  const Problem problem = parse(kWhole);
  const std::string document = serialise(problem);
  const Problem again = deserialise(document);
  ASSERT_TRUE(again.program);
  EXPECT_EQ(serialise(again), document);
  EXPECT_EQ(again.program->exit_status, problem.program->exit_status);
  EXPECT_EQ(identity_of(again), identity_of(problem));
}

TEST_F(ProgramFileTest, OneCommandAndOnePatternNeedNoLists) {
  const Problem problem = parse(
      "[parameters]\nTILE = [1]\n[program]\ncommand = [\"true\"]\nbuild = [\"make\", \"TILE={{TILE}}\"]\ncheck = "
      "'fine'\n");
  EXPECT_EQ(problem.program->build.size(), 1u);
  EXPECT_EQ(problem.program->check_pattern, "fine");
  EXPECT_THAT(
      parse("[parameters]\nTILE = [1]\n[program]\ncommand = [\"true\"]\ncheck = [\"true\"]\n").program->check_command,
      testing::SizeIs(1));
}

// What decides about results: the program itself, files that it is given, sources; not where they lie.
TEST_F(ProgramFileTest, IdentityFollowsTheContentsOfFiles) {
  const std::string text =
      "[parameters]\nTILE = [1]\n[program]\ncommand = [\"sh\", \"{{folder}}/run.sh\", \"--in=data\"]\nsources = "
      "[\"lib\"]\n";
  std::filesystem::create_directory(folder / "lib");
  write("run.sh", "true\n");
  write("data", "1\n");
  write("lib/a", "1\n");
  const std::string first = identity_of(parse(text));
  EXPECT_EQ(identity_of(parse(text)), first);
  for (const char* name : {"run.sh", "data", "lib/a"}) {
    write(name, "changed\n");
    const std::string now = identity_of(parse(text));
    EXPECT_NE(now, first) << name;
    write(name, name == std::string("run.sh") ? "true\n" : "1\n");
    EXPECT_EQ(identity_of(parse(text)), first) << name;
  }
}

TEST_F(ProgramFileTest, MistakesAreReportedWithTheirPlace) {
  EXPECT_THAT(mistake("comand = [\"a\"]"), AllOf(StartsWith("p.toml:5:1:"), HasSubstr("did you mean \"command\"?")));
  EXPECT_THAT(mistake("environment = {}"), HasSubstr("\"command\""));
  EXPECT_THAT(mistake("command = \"./app --tile\""),
              AllOf(StartsWith("p.toml:5:"), HasSubstr("[\"sh\", \"-c\", \"...\"]")));
  EXPECT_THAT(mistake("command = []"), HasSubstr("a list of the program and its arguments"));
  EXPECT_THAT(mistake("command = [\"a\", \"{{TLIE}}\"]"), AllOf(StartsWith("p.toml:5:"), HasSubstr("TILE")));
  EXPECT_THAT(mistake("command = [\"a\", \"{{build}}\"]"), HasSubstr("build"));
  EXPECT_THAT(mistake("command = [\"a\"]\noutput = { rate = 'rate: [0-9]+' }"),
              AllOf(StartsWith("p.toml:6:"), HasSubstr("0 groups in parentheses and needs one")));
  EXPECT_THAT(mistake("command = [\"a\"]\noutput = { rate = '(a)|(b)|(c)' }"), HasSubstr("3 groups"));
  EXPECT_THAT(mistake("command = [\"a\"]\noutput = { rate = '([0-9]+' }"), HasSubstr("is not a regular expression"));
  EXPECT_THAT(mistake("command = [\"a\"]\noutput = { registers = '([0-9]+)' }"), HasSubstr("quantity of kernels"));
  EXPECT_THAT(mistake("command = [\"a\"]\noutput = { TILE = '([0-9]+)' }"),
              HasSubstr("both a parameter and a quantity"));
  EXPECT_THAT(mistake("command = [\"a\"]\ncheck = '(('"),
              AllOf(StartsWith("p.toml:6:"), HasSubstr("is not a regular expression")));
  EXPECT_THAT(mistake("command = [\"a\"]\ncheck = { reference = \"nothing\" }"), HasSubstr("file that can be read"));
  EXPECT_THAT(mistake("command = [\"a\"]\ncheck = { file = \"out\" }"), HasSubstr("needs \"reference\""));
  EXPECT_THAT(mistake("command = [\"a\"]\nexit_status = { 0 = \"ok\" }"), HasSubstr("from 1 to 255"));
  EXPECT_THAT(mistake("command = [\"a\"]\nexit_status = { 3 = \"wrong\" }"), HasSubstr("wrong_result"));
  EXPECT_THAT(mistake("command = [\"a\"]\ntime_limit = 0"), HasSubstr("greater than 0 s"));
  EXPECT_THAT(mistake("command = [\"a\"]\nfiles = { \"../out\" = \"x\" }"), HasSubstr("inside the folder"));
  EXPECT_THAT(mistake("command = [\"a\"]\nbuild_files = { a = \"x\" }"), HasSubstr("there is none"));
  EXPECT_THAT(mistake("command = [\"a\"]\nsources = [\"none.c\"]"), HasSubstr("is not there"));
  EXPECT_THAT(mistake("command = [\"a\"]", "[kernel]\nfunction = \"f\""), HasSubstr("program"));
  EXPECT_THAT(mistake("command = [\"a\"]", "[verification]\nkind = \"none\""), HasSubstr("\"check\""));
  EXPECT_THAT(mistake("command = [\"a\"]", "[constants]\nfolder = 1"), HasSubstr("folder of the program"));
}

TEST_F(ProgramFileTest, BracesInACommandLineStandForThemselves) {
  const Constants none;
  for (const char* text : {"{{x}}", "a{{{b", "{{", "}}", "plain", "{{'{'}}"}) {
    EXPECT_EQ(literal_template(text).render([](std::string_view) { return nullptr; }), text);
  }
}

}  // namespace
}  // namespace ergotune
