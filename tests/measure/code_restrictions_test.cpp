// Restrictions over what the compiler says: known before a configuration runs.
#include <gtest/gtest.h>

#include <limits>

#include "device/device.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "ergotune/result.hpp"
#include "measure/code_restrictions.hpp"
#include "measure/runner_fixture.hpp"
#include "problem/code_names.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Restriction of(const char* text) {
  Restriction restriction;
  restriction.expression = Expression::parse(text);
  return restriction;
}

class CodeRestrictions : public test::RunnerTest {
 protected:
  std::optional<std::string> broken(const char* text, std::map<std::string, Quantity> quantities) {
    problem.restrictions = {of(text)};
    return broken_code_restriction(problem, problem.parameters, {Value(64)}, {{"limit", Value(100)}}, quantities);
  }
};

TEST_F(CodeRestrictions, AreThoseThatNameWhatTheCompilerSays) {
  EXPECT_THAT(code_names_in(problem, of("registers * block_size_x <= 65536 and time < 1")), ElementsAre("registers"));
  EXPECT_THAT(code_names_in(problem, of("block_size_x <= 64")), IsEmpty());
  problem.parameters.front().name = "registers";
  EXPECT_THAT(code_names_in(problem, of("registers <= 64")), IsEmpty()) << "a parameter of that name comes first";
}

TEST_F(CodeRestrictions, ComparesWithParametersAndConstants) {
  EXPECT_EQ(broken("registers <= limit", {{"registers", {100}}}), std::nullopt);
  EXPECT_EQ(broken("registers * block_size_x <= 6400", {{"registers", {101}}}),
            "restriction \"registers * block_size_x <= 6400\": registers is 101");
  EXPECT_EQ(broken("registers % 8 == 0", {{"registers", {96}}}), std::nullopt) << "a count is an integer";
  EXPECT_EQ(broken("occupancy >= 0.5", {}), std::nullopt) << "what nobody tells restricts nothing";
  EXPECT_EQ(broken("block_size_x > 64", {}), std::nullopt) << "that is the space's matter";
}

TEST_F(CodeRestrictions, AreEachTriedByWhatIsReported) {
  const auto words = [&](const char* text, double value) {
    return broken(text, {{"registers", {value}}, {"shared_bytes", {7}}});
  };
  EXPECT_EQ(words("registers < 10 and shared_bytes < 5", 20),
            "restriction \"registers < 10 and shared_bytes < 5\": registers is 20, shared_bytes is 7");
  EXPECT_EQ(words("registers // 2 == 1", 2.5), std::nullopt) << "a share is no integer";
  EXPECT_EQ(words("registers > 1e14", 1e16), std::nullopt) << "nor is what is too large for one";
  EXPECT_EQ(broken("registers + spilled_registers < 1", {{"registers", {5}}}), std::nullopt)
      << "half of it is not told";
  problem.restrictions = {of("spilled_registers < 1"), of("registers < 1")};
  EXPECT_NE(broken_code_restriction(problem, problem.parameters, {}, {}, {{"registers", {5}}}), std::nullopt)
      << "the other one is";
}

TEST_F(CodeRestrictions, AreLeftOutOfTheSpaceAndStopAConfigurationBeforeItRuns) {
  problem.restrictions = {of("registers <= 10"), of("block_size_x <= 64")};
  EXPECT_EQ(problem.build_space({}).size(), 2u);
  Runner runner(device, problem, options);
  const std::size_t before = device.launches;
  const Measurement found = measure(runner, 64);
  EXPECT_EQ(found.status, Status::unsupported);
  EXPECT_THAT(found.message, HasSubstr("registers <= 10"));
  EXPECT_EQ(device.launches, before) << "nothing ran";
  EXPECT_TRUE(found.quantities.contains("registers"));
  EXPECT_FALSE(found.quantities.contains("time"));
}

TEST(Measurement, StatusNamesGoBothWays) {
  for (const auto& [status, name] :
       {std::pair(Status::ok, "ok"), std::pair(Status::compile_error, "compile_error"),
        std::pair(Status::launch_error, "launch_error"), std::pair(Status::runtime_error, "runtime_error"),
        std::pair(Status::timeout, "timeout"), std::pair(Status::wrong_result, "wrong_result"),
        std::pair(Status::not_converged, "not_converged"), std::pair(Status::unsupported, "unsupported")}) {
    EXPECT_EQ(to_string(status), name);
    EXPECT_EQ(status_from(name), status);
  }
  EXPECT_EQ(to_string(Provenance::measured), "measured");
  EXPECT_EQ(to_string(Provenance::modelled), "modelled");
  EXPECT_FALSE(status_from("fine"));
  EXPECT_TRUE(usable(Status::not_converged));
  EXPECT_FALSE(usable(Status::wrong_result));
}

TEST(Measurement, ValuesThatAreNoNumbersAreNoValues) {
  Measurement m;
  m.quantities["time"] = {0.5, 0.01, 7, "", "", Provenance::measured};
  m.quantities["energy"] = {std::numeric_limits<double>::quiet_NaN(), 0, 1, "", "", Provenance::measured};
  m.metrics["gflops"] = 12;
  m.metric_errors["gflops"] = 0.5;
  EXPECT_EQ(m.value("time"), 0.5);
  EXPECT_EQ(m.standard_error("time"), 0.01);
  EXPECT_FALSE(m.value("energy"));
  EXPECT_EQ(m.value("gflops"), 12);
  EXPECT_EQ(m.standard_error("gflops"), 0.5);
  EXPECT_FALSE(m.value("power"));
  m.metrics["alone"] = 3;
  EXPECT_EQ(m.standard_error("alone"), 0) << "nobody tells one";
  EXPECT_EQ(m.standard_error("power"), 0);
}

TEST(CompileStatus, IsTheCompilersErrorButWhereTheDeviceSaysMore) {
  EXPECT_EQ(compile_status(DeviceError(DeviceFault::unsupported, "")), Status::unsupported);
  EXPECT_EQ(compile_status(DeviceError(DeviceFault::timeout, "")), Status::timeout);
  for (const DeviceFault fault :
       {DeviceFault::compile, DeviceFault::launch, DeviceFault::runtime, DeviceFault::out_of_memory})
    EXPECT_EQ(compile_status(DeviceError(fault, "")), Status::compile_error);
  EXPECT_EQ(compile_status(std::runtime_error("")), Status::compile_error);
}

}  // namespace
}  // namespace ergotune
