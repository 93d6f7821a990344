#include "tune/session/single_configuration.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace ergotune::test
