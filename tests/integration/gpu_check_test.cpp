// scripts/gpu-check must never change a setting of a card. Shown on the fake driver, which keeps its settings in a
// file.
#include <gmock/gmock.h>

#include <string>

#include "base/process/process.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;

const std::string kScript = ERGOTUNE_SOURCE_DIR "/scripts/gpu-check";

TEST(GpuCheck, RefusesArgumentsThatNameAControl) {
  for (const char* argument : {"--control", "core_clock_mhz=1200", "power_limit_w", "-lgc", "-pl", "clocks"}) {
    const auto result = run_process({kScript, "run", argument}, {.timeout = 20});
    EXPECT_EQ(result.exit_code, 2) << argument;
    EXPECT_THAT(result.err, HasSubstr("would change the card's settings"));
  }
}

TEST(GpuCheck, ForbidsControlsToEverythingItRuns) {
  // what the script exports reaches its children and cannot be taken back inside it
  const auto result =
      run_process({"bash", "-c",
                   "source <(sed -n '/^export ERGOTUNE_FORBID/,/^readonly/p' '" + kScript +
                       "'); (ERGOTUNE_FORBID_CONTROLS=0) 2>/dev/null; printenv ERGOTUNE_FORBID_CONTROLS"},
                  {.timeout = 20});
  EXPECT_EQ(result.out, "1\n") << result.err;
}

}  // namespace
}  // namespace ergotune
