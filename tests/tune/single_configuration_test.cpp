#include "tune/session/single_configuration.hpp"

#include <gtest/gtest.h>

#include "ergotune/error.hpp"
#include "ergotune/problem_file.hpp"
#include "tune/fake_evaluator.hpp"

namespace ergotune::test {
namespace {

TEST(SingleConfiguration, IsMeasuredUnderALastingLoadAsConfirmationsAre) {
  SetupOptions setup;
  setup.run.device = "sim:a100";
  PreparedSession prepared = prepare_session(load_problem(ERGOTUNE_SOURCE_DIR "/examples/gemm/gemm.toml"), setup);
  auto device = std::make_unique<FakeEvaluator>();
  const FakeEvaluator& asked = *device;
  device->measure = [](const Configuration&, int) {
    Measurement measured;
    measured.quantities["time"].value = 1e-3;
    return measured;
  };
  prepared.evaluator = std::move(device);
  EXPECT_EQ(measure_one(prepared, 0).measurement.value("time"), 1e-3);
  ASSERT_EQ(asked.requests.size(), 1u);
  EXPECT_GE(asked.requests.front().settle_seconds, 0.1);
}

TEST(SingleConfiguration, IsWrittenAsItIsPrintedOrInJson) {
  Parameter block, kind, flag;
  block.name = "BLOCK", block.values = {1, 64};
  kind.name = "KIND", kind.values = {"fast", "small"};
  flag.name = "FLAG", flag.values = {false, true};
  const std::vector<Parameter> parameters{block, kind, flag};
  const Configuration wanted{64, "small", true};
  EXPECT_EQ(configuration_of_text(describe(parameters, wanted), parameters), wanted);
  EXPECT_EQ(configuration_of_text(R"({"BLOCK": 64, "KIND": "small", "FLAG": true})", parameters), wanted);
  EXPECT_EQ(configuration_of_text("BLOCK=64", parameters), (Configuration{64, "fast", false}));
  for (const char* wrong : {"64", "BLOK=64", "[64]"})
    EXPECT_THROW(configuration_of_text(wrong, parameters), UserError) << wrong;
}

}  // namespace
}  // namespace ergotune::test
