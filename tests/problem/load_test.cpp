#include "ergotune/problem_file.hpp"
#include "error_of.hpp"
#include "problem/document/problem_document.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace ergotune {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const std::filesystem::path kProblems = std::filesystem::path(ERGOTUNE_TEST_DATA) / "problems";

std::vector<std::string> names(const std::vector<Parameter>& parameters) {
  std::vector<std::string> result;
  for (const Parameter& parameter : parameters) result.push_back(parameter.name);
  return result;
}

std::string message_of(const std::string& text) {
  return error_of([&] { parse_problem(text, "test.toml"); }, "no error");
}

TEST(LoadProblem, KeepsTheOrderOfTheFile) {
  const Problem problem = load_problem(kProblems / "gemm.toml");
  EXPECT_THAT(names(problem.parameters),
              ElementsAre("MWG", "NWG", "KWG", "KWI", "MDIMC", "NDIMC", "VWM", "USE_FMA", "LAYOUT"));
  ASSERT_EQ(problem.metrics.size(), 3u);
  EXPECT_EQ(problem.metrics[0].name, "gflops");
  EXPECT_EQ(problem.metrics[0].unit, "GFLOP/s");
  EXPECT_EQ(problem.metrics[2].expression.text(), "gflops / 1000");
}

TEST(LoadProblem, ReadsEveryFormOfAParameter) {
  const Problem problem = load_problem(kProblems / "gemm.toml");
  EXPECT_THAT(problem.parameters[0].values, ElementsAre(16, 32, 64, 128));
  EXPECT_EQ(problem.parameters[3].default_value, Value(2));
  ASSERT_TRUE(problem.parameters[5].range.has_value());
  EXPECT_EQ(problem.parameters[5].range->stop.text(), "min(NWG, 32) + 1");
  // bounds without names are values at once
  EXPECT_FALSE(problem.parameters[6].range.has_value());
  EXPECT_THAT(problem.parameters[6].values, ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_TRUE(problem.parameters[7].values[1].is_bool());
  EXPECT_EQ(problem.parameters[8].values[0].as_string(), "row");
}

TEST(LoadProblem, ReadsExecutionParameters) {
  const Problem problem = load_problem(kProblems / "gemm.toml");
  ASSERT_EQ(problem.execution_parameters.size(), 3u);
  using Choice = ExecutionParameterSpec::Choice;
  EXPECT_EQ(problem.execution_parameters[0].choice, Choice::equidistant);
  EXPECT_EQ(problem.execution_parameters[0].count, 7);
  EXPECT_EQ(problem.execution_parameters[1].kind, ParameterKind::memory_clock_mhz);
  EXPECT_EQ(problem.execution_parameters[1].choice, Choice::all);
  EXPECT_EQ(problem.execution_parameters[2].choice, Choice::range);
  EXPECT_EQ(problem.execution_parameters[2].low, 150);
  EXPECT_EQ(problem.execution_parameters[2].high, 250);
  EXPECT_EQ(problem.execution_parameters[2].step, 25);
}

// Elements that a configuration does not write decide no minimum.
TEST(LoadProblem, OutputsComparedByMinimumOrMaximumBeginWithTheNeutralElement) {
  const auto begin = [](const char* type, const char* how, const char* more) {
    return parse_problem(fmt::format("[kernel]\nfunction = \"f\"\nsource = {{ c = {{ text = \"void f(void) {{}}\" }} "
                                     "}}\narguments = [{{ name = "
                                     "\"p\", type = \"{}\", count = 4, access = \"write\"{} }}]\n[parameters]\nA = "
                                     "[1]\n[verification]\ncompare = {{ p = \"{}\" }}\n",
                                     type, more, how),
                         "p.toml")
        .kernel()
        .arguments[0]
        .fill.value;
  };
  EXPECT_EQ(begin("int32", "min", ""), 2147483647);
  EXPECT_EQ(begin("int32", "max", ""), -2147483648.0);
  EXPECT_GT(begin("float32", "min", ""), 1e38);
  EXPECT_LT(begin("float16", "max", ""), -6e4);
  EXPECT_LT(begin("int64", "min", ""), 9223372036854775807.0);
  EXPECT_EQ(begin("float32", "sum", ""), 0);
  EXPECT_EQ(begin("float32", "min", ", fill = 7"), 7);
}

TEST(LoadProblem, ReadsKernelArgumentsAndVerification) {
  const Problem problem = load_problem(kProblems / "gemm.toml");
  const Kernel& kernel = problem.kernel();
  ASSERT_EQ(kernel.arguments.size(), 6u);
  EXPECT_EQ(kernel.arguments[0].kind, Argument::Kind::scalar);
  EXPECT_EQ(kernel.arguments[3].fill.seed, 7u);
  EXPECT_EQ(kernel.arguments[3].fill.low, -1);
  EXPECT_EQ(kernel.arguments[4].fill.kind, Fill::Kind::random);
  EXPECT_NE(kernel.arguments[3].fill.seed, kernel.arguments[4].fill.seed);
  EXPECT_EQ(kernel.arguments[5].access, Access::write);
  EXPECT_EQ(kernel.arguments[5].fill.kind, Fill::Kind::constant);
  ASSERT_NE(kernel.source_for(Language::opencl), nullptr);
  EXPECT_THAT(kernel.source_for(Language::opencl)->text, HasSubstr("__kernel void gemm"));
  EXPECT_EQ(kernel.source_for(Language::opencl)->include_folders.size(), 2u);
  EXPECT_EQ(kernel.source_for(Language::cuda), nullptr);
  EXPECT_EQ(kernel.launch.global.size(), 2u);
  EXPECT_EQ(kernel.options.at("").size(), 1u);
  EXPECT_EQ(kernel.options.at("opencl")[0].text(), "-cl-fast-relaxed-math");
  EXPECT_EQ(problem.verification.kind, Verification::Kind::host_function);
  ASSERT_TRUE(problem.verification.reference);
  EXPECT_EQ(problem.verification.reference->arguments.size(), 6u);
  EXPECT_EQ(problem.verification.reference->sources[0].language, Language::c);
  EXPECT_EQ(problem.verification.absolute_tolerance, 1e-3);
}

TEST(LoadProblem, ReadsGoalPlansAndDefaults) {
  const ProblemFile problem = load_problem(kProblems / "gemm.toml");
  EXPECT_EQ(problem.objective.text, "energy subject to time <= 1.1 * best(time)");
  EXPECT_EQ(problem.objective.place.line, 3);
  ASSERT_EQ(problem.plans.size(), 1u);
  ASSERT_EQ(problem.plans[0].stages.size(), 2u);
  EXPECT_EQ(problem.plans[0].stages[0].fixed.at("core_clock_mhz"), Value("max"));
  EXPECT_EQ(problem.plans[0].stages[0].budget, "200");
  EXPECT_EQ(problem.run.seed, 42u);
  EXPECT_EQ(problem.run.budget, "10min");
  EXPECT_EQ(problem.run.precision, 0.02);
  EXPECT_EQ(problem.run.cold_cache, true);
  EXPECT_EQ(problem.run.strategy_options.at("population"), Value(20));
  EXPECT_EQ(problem.restrictions[2].restriction_class, RestrictionClass::device_limit);
  EXPECT_EQ(problem.restrictions[2].label(), "threads per block");
  EXPECT_EQ(problem.restrictions[3].restriction_class, RestrictionClass::performance);
}

TEST(LoadProblem, ReadsStructuresAndHowOutputsAreCompared) {
  const Problem problem = load_toml_problem(R"(
[parameters]
bx = [1, 2]
[kernel]
function = "f"
source.c.text = ""
arguments = [
  { name = "g", type = "struct grid", fields = [ { name = "n", type = "int", value = 4 }, { name = "h", type = "double", value = "1 / bx" } ] },
  { name = "x", type = "float32", count = 4, access = "write" },
]
[verification]
per_configuration = true
compare = { x = "sorted" }
[verification.host_function]
function = "g"
source.c.text = ""
)",
                                            "p.toml");
  const Problem same = deserialise(serialise(problem));
  for (const Problem* one : {&problem, &same}) {
    const Argument& grid = one->kernel().arguments[0];
    EXPECT_EQ(grid.kind, Argument::Kind::scalar);
    EXPECT_EQ(grid.type_name, "struct grid");
    ASSERT_EQ(grid.fields.size(), 2u);
    EXPECT_EQ(grid.fields[1].type, ElementType::float64);
    EXPECT_EQ(grid.fields[1].value.text(), "1 / bx");
    EXPECT_TRUE(one->verification.per_configuration);
    EXPECT_EQ(one->verification.compare.at("x"), Compare::sorted);
  }
}

TEST(LoadProblem, AMemberThatIsAnAddressNamesABufferOfTheKernel) {
  const auto load = [](const std::string& member) {
    return load_toml_problem(
        "[parameters]\nbx = [1, 2]\n[kernel]\nfunction = \"f\"\nsource.c.text = \"\"\narguments = [{ name = \"g\", "
        "type = \"struct g\", fields = [" +
            member + "] }, { name = \"x\", type = \"float32\", count = 4, when = \"False\" }]\n",
        "p.toml");
  };
  EXPECT_NO_THROW(load("{ name = \"&x\", type = \"uint64\", value = 8 }"));
  EXPECT_THROW(load("{ name = \"&y\", type = \"uint64\", value = 0 }"), UserError);
  EXPECT_THROW(load("{ name = \"&x\", type = \"int32\", value = 0 }"), UserError);
}

TEST(LoadProblem, ReadsArgumentsThatDependOnTheConfiguration) {
  const ProblemFile problem = load_toml_problem(R"(
[parameters]
real = ["float", "double"]
[kernel]
function = "f"
source.c.text = ""
arguments = [
  { name = "x32", type = "float32", count = 4, when = "real == 'float'" },
  { name = "x64", type = "float64", count = 4, when = "real == 'double'" },
]
)",
                                                "p.toml");
  const Value real("double");
  const Scope scope = [&](std::string_view) { return &real; };
  for (const Problem& one : {problem, deserialise(serialise(problem))}) {
    EXPECT_FALSE(one.kernel().arguments[0].passed(scope));
    EXPECT_TRUE(one.kernel().arguments[1].passed(scope));
  }
  EXPECT_THAT(to_t1_json(problem), AllOf(HasSubstr("x32"), Not(HasSubstr("x64")))) << "those of the defaults";
}

TEST(LoadProblem, TakesSourceFromTheFileItself) {
  const Problem problem = load_problem(kProblems / "vector_add.toml");
  ASSERT_EQ(problem.kernel().sources.size(), 1u);
  EXPECT_EQ(problem.kernel().sources[0].language, Language::c);
  EXPECT_THAT(problem.kernel().sources[0].text, HasSubstr("void vector_add"));
  EXPECT_TRUE(problem.kernel().sources[0].file.empty());
  EXPECT_EQ(problem.verification.kind, Verification::Kind::first_correct);
}

TEST(LoadProblem, ConstantsByDeviceOverrideAndDevicePropertiesJoin) {
  const Problem problem = load_problem(kProblems / "gemm.toml");
  const Constants elsewhere = problem.constants_for("RTX 4000", {{"device.max_threads_per_block", 1024}});
  EXPECT_EQ(elsewhere.at("m"), Value(1024));
  EXPECT_EQ(elsewhere.at("device.max_threads_per_block"), Value(1024));
  const Constants there = problem.constants_for("NVIDIA A100-PCIE-40GB", {});
  EXPECT_EQ(there.at("m"), Value(4096));
  EXPECT_EQ(there.at("n"), Value(1024));
}

TEST(LoadProblem, MessagesNamePlaceAndNearestName) {
  EXPECT_EQ(message_of("nmae = \"x\"\n"),
            "test.toml:1:1: unknown key \"nmae\" in the problem file (did you mean \"name\"?)");
  EXPECT_THAT(message_of("name = \"x\"\n[parameters]\na = [1, 2\n"), HasSubstr("test.toml:"));
  EXPECT_THAT(message_of(""), HasSubstr("test.toml"));
}

TEST(LoadProblem, PlainJsonLimitsTheThreads) {
  const Problem problem = parse_problem(
      R"({"name": "x", "tune_params": {"tile": [1, 2], "block_size_x": [16, 32], "block_size_y": [1, 64]},
          "restrictions": ["tile < block_size_x"], "max_threads": 1024})",
      "plain.json");
  EXPECT_THAT(names(problem.parameters), ElementsAre("tile", "block_size_x", "block_size_y"));
  ASSERT_EQ(problem.restrictions.size(), 2u);
  EXPECT_EQ(problem.restrictions[1].expression.text(), "block_size_x*block_size_y <= 1024");
  EXPECT_EQ(problem.restrictions[1].restriction_class, RestrictionClass::device_limit);
}

TEST(LoadProblem, ReadsT1) {
  const std::string text = R"T1({
    "General": {"BenchmarkName": "conv"},
    "ConfigurationSpace": {
      "TuningParameters": [
        {"Name": "block_size_x", "Type": "int", "Values": "[16, 32]", "Default": 32},
        {"Name": "tile", "Type": "int", "Values": "list(range(1, 5))", "Default": 9},
        {"Name": "kind", "Type": "string", "Values": "['a,b', \"c\"]"}],
      "Conditions": [{"Expression": "block_size_x*tile <= 64", "Parameters": ["block_size_x", "tile"]}]},
    "KernelSpecification": {
      "Language": "CUDA", "KernelName": "conv_kernel", "KernelFile": "not_there.cu",
      "LocalSize": {"X": "block_size_x", "Y": "1"}, "GlobalSize": {"X": "1"},
      "ProblemSize": [4096, 100], "GridDivX": ["block_size_x", "tile"],
      "Arguments": [
        {"Name": "out", "Type": "float", "MemoryType": "Vector", "AccessType": "WriteOnly", "FillType": "Constant",
         "Size": "ProblemSize[0]*max(tile)", "FillValue": 0.0},
        {"Type": "int32", "MemoryType": "Scalar", "FillValue": 7},
        {"Type": "float4", "MemoryType": "Vector", "Size": 10, "FillType": "Random"}]}})T1";
  const Problem problem = parse_problem(text, "conv.T1.json");
  EXPECT_EQ(problem.name, "conv");
  ASSERT_EQ(problem.parameters.size(), 3u);
  EXPECT_EQ(problem.parameters[0].default_value, Value(32));
  EXPECT_FALSE(problem.parameters[1].default_value.has_value()) << "9 is not one of its values";
  EXPECT_THAT(problem.parameters[1].values, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(problem.parameters[2].values, ElementsAre("a,b", "c"));
  const Kernel& kernel = problem.kernel();
  ASSERT_EQ(kernel.launch.grid.size(), 2u);
  Constants known = problem.constants;
  known["block_size_x"] = 32;
  known["tile"] = 3;
  EXPECT_EQ(kernel.launch.grid[0].evaluate(known), Value(43)) << "ceil(4096 / 96)";
  EXPECT_EQ(kernel.launch.grid[1].evaluate(known), Value(100));
  EXPECT_EQ(kernel.arguments[0].count.evaluate(known), Value(16384));
  EXPECT_EQ(kernel.arguments[0].access, Access::write);
  EXPECT_EQ(kernel.arguments[1].value.evaluate(known), Value(7));
  EXPECT_EQ(kernel.arguments[2].count.evaluate(known), Value(40)) << "ten times four floats";
  EXPECT_TRUE(kernel.sources[0].text.empty());
}

TEST(LoadProblem, T1RoundTrip) {
  const Problem problem = load_problem(kProblems / "gemm.toml");
  const Problem again = parse_problem(to_t1_json(problem), kProblems / "gemm.T1.json");
  EXPECT_EQ(names(again.parameters), names(problem.parameters));
  EXPECT_EQ(again.parameters[0].values, problem.parameters[0].values);
  EXPECT_EQ(again.parameters[5].range->stop.text(), "min(NWG, 32) + 1");
  ASSERT_EQ(again.restrictions.size(), problem.restrictions.size());
  EXPECT_EQ(again.restrictions[1].expression.to_string(), problem.restrictions[1].expression.to_string());
}

TEST(LoadProblem, AnyCharacterMayStandInStringsAndComments) {
  EXPECT_EQ(message_of("space_only = true  # Größe\nname = \"é \\\" é\"\ndescription = \"\"\"\n\"é\" 'é\n\"\"\"\n"
                       "[parameters]\nb = ['é', 'è'] # ü\n"),
            "no error");
  EXPECT_THAT(message_of("space_only = true\n[parameters]\nb = [1, é]\n"), HasSubstr("test.toml:3:9: "));
}

TEST(LoadProblem, AModelOrASpaceNeedsNoKernel) {
  const std::string parameters = "[parameters]\nbx = [32, 64]\n";
  EXPECT_THAT(message_of(parameters), HasSubstr("needs \"kernel\""));
  EXPECT_EQ(message_of("space_only = true\n" + parameters), "no error");
  const Problem problem =
      parse_problem("name = \"m\"\n" + parameters + "[simulation]\nflops = \"2*bx\"\n", "model.toml");
  EXPECT_EQ(problem.kernel().function.text(), "m");
  EXPECT_EQ(problem.simulation.at("flops").text(), "2*bx");
  EXPECT_EQ(
      message_of(parameters + "[kernel]\nfunction = \"f\"\nsource.opencl.text = \"x\"\n[simulation]\nflops = 1\n"),
      "no error");
}

TEST(LoadProblem, ReadsObserversWithTheirOptions) {
  const Problem problem = parse_problem(R"(
observe = ["host_time", "launches"]
space_only = true
[parameters]
x = [1]
[observers]
counters = { metrics = ["a", "b"], passes = 3 }
power = {}
)",
                                        "p.toml");
  ASSERT_EQ(problem.observers.size(), 4u);
  EXPECT_EQ(problem.observers[0].name, "host_time");
  EXPECT_EQ(problem.observers[1].name, "launches");
  EXPECT_EQ(problem.observers[1].place.line, 2);
  const ObserverSpec& counters = problem.observers[2];
  EXPECT_EQ(counters.name, "counters");
  EXPECT_EQ(counters.place.to_string(), "p.toml:7:1");
  EXPECT_EQ(counters.options.at("metrics"), (std::vector<Value>{"a", "b"}));
  EXPECT_EQ(counters.options.at("passes"), std::vector<Value>{3});
  EXPECT_TRUE(problem.observers[3].options.empty());
}

TEST(LoadProblem, ANewFileIsSaidToBeMissing) {
  EXPECT_THAT(error_of([&] { load_problem("no/such/file.toml"); }),
              testing::AllOf(HasSubstr("no/such/file.toml"), HasSubstr("does not exist")));
}

}  // namespace
}  // namespace ergotune
