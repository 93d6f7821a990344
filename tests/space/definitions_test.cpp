// The twelve spaces that the field's users tune, against the counts an independent enumerator confirmed.
#include <gtest/gtest.h>

#include "definitions.hpp"
#include "recorded_data.hpp"

namespace ergotune {
namespace {

struct Known {
  const char* name;
  double cartesian;
  std::uint64_t valid;
};

constexpr Known kSpaces[] = {
    {"atf_prl_2x2", 36864, 1200},      {"atf_prl_4x4", 9437184, 10800},       {"atf_prl_8x8", 2415919104, 48720},
    {"dedispersion", 22272, 11130},    {"expdist", 9732096, 294000},          {"gemm", 663552, 116928},
    {"hotspot", 22200000, 349853},     {"hub_convolution_milo", 10240, 4362}, {"hub_dedispersion_milo", 22272, 11130},
    {"hub_gemm_milo", 663552, 116928}, {"hub_hotspot_milo", 4440000, 82984},  {"microhh", 1166400, 138600},
};

TEST(KnownSpaces, HaveTheConfirmedCounts) {
  for (const Known& known : kSpaces) {
    SCOPED_TRACE(known.name);
    auto definition = test::read_definition(test::recorded_data() / "spaces" / (std::string(known.name) + ".json"));
    const auto space = SearchSpace::build(definition.parameters, definition.restrictions);
    EXPECT_EQ(space.size(), known.valid);
    EXPECT_EQ(space.cartesian_size(), known.cartesian);
    Random random(7);
    std::vector<std::uint32_t> values(space.dimensions());
    for (int i = 0; i < 1000; ++i) {
      const auto index = space.sample(random);
      space.values_at(index, values);
      EXPECT_EQ(space.index_of(values), index);
    }
  }
}

}  // namespace
}  // namespace ergotune
