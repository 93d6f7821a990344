// The twelve spaces that the field's users tune, against the counts an independent enumerator confirmed.
#include <gtest/gtest.h>

#include "definitions.hpp"

namespace ergotune {
namespace {

struct Known {
  const char* name;
  double cartesian;
  std::uint64_t valid;
};

class KnownSpaces : public ::testing::TestWithParam<Known> {};

TEST_P(KnownSpaces, HasTheConfirmedCount) {
  const auto folder = test::shared_data();
  if (folder.empty()) GTEST_SKIP() << "the recorded data is not here";
  auto definition = test::read_definition(folder / "spaces" / (std::string(GetParam().name) + ".json"));
  const auto space = SearchSpace::build(definition.parameters, definition.restrictions);
  EXPECT_EQ(space.size(), GetParam().valid);
  EXPECT_EQ(space.cartesian_size(), GetParam().cartesian);
  Random random(7);
  std::vector<std::uint32_t> values(space.dimensions());
  for (int i = 0; i < 1000; ++i) {
    const auto index = space.sample(random);
    space.values_at(index, values);
    EXPECT_EQ(space.index_of(values), index);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Definitions, KnownSpaces,
    ::testing::Values(Known{"atf_prl_2x2", 36864, 1200}, Known{"atf_prl_4x4", 9437184, 10800},
                      Known{"atf_prl_8x8", 2415919104, 48720}, Known{"dedispersion", 22272, 11130},
                      Known{"expdist", 9732096, 294000}, Known{"gemm", 663552, 116928},
                      Known{"hotspot", 22200000, 349853}, Known{"hub_convolution_milo", 10240, 4362},
                      Known{"hub_dedispersion_milo", 22272, 11130}, Known{"hub_gemm_milo", 663552, 116928},
                      Known{"hub_hotspot_milo", 4440000, 82984}, Known{"microhh", 1166400, 138600}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace ergotune
