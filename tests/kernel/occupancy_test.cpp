// Occupancy, calculated in one place: as a quantity, and in an expression.
#include "kernel/occupancy.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "problem/tables/device_profile.hpp"

namespace ergotune {
namespace {

TEST(Occupancy, IsTheSameInAnExpressionOnEveryProfile) {
  int compared = 0;
  for (const std::string& name : device_profile_names()) {
    const Constants properties = load_device_profile(name).properties;
    for (const int threads : {32, 64, 96, 256, 1024})
      for (const int registers : {0, 1, 37, 128, 255})
        for (const int shared : {0, 1, 2112, 5184, 40000}) {
          const auto quantity = occupancy_of({double(threads), double(registers), double(shared)}, properties);
          if (!quantity) continue;
          const std::string call = fmt::format("occupancy({}, {}, {})", threads, registers, shared);
          Value blocks;
          try {
            blocks = Expression::parse(call).evaluate([&](std::string_view wanted) -> const Value* {
              const auto found = properties.find(wanted);
              return found == properties.end() ? nullptr : &found->second;
            });
          } catch (const std::exception&) {
            continue;  // the profile lacks what an expression asks for
          }
          ++compared;
          EXPECT_EQ(blocks, Value(quantity->blocks)) << call << " on " << name;
        }
  }
  EXPECT_GT(compared, 1000);
}

TEST(Occupancy, RoundsSharedMemoryUpToTheDevicesUnit) {
  EXPECT_EQ(occupancy_of({64, 0, 2112}, load_device_profile("mi300x").properties)->blocks, 65536 / 2560);
  EXPECT_EQ(occupancy_of({32, 0, 5184}, load_device_profile("a100").properties)->blocks, 167936 / 5248);
}

}  // namespace
}  // namespace ergotune
