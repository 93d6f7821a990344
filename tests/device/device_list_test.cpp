// Finding devices by what users write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "device_fixtures.hpp"
#include "ergotune/problem.hpp"
#include "error_of.hpp"

using namespace ergotune;
using testing::HasSubstr;

namespace {

TEST(DeviceList, HostIsAlwaysThereAndLast) {
  const auto devices = list_devices();
  ASSERT_FALSE(devices.empty());
  EXPECT_EQ(devices.back().id, "host");
}

TEST(DeviceList, AbsentDriversGiveANoteEach) {
  std::vector<std::string> notes;
  const auto devices = list_devices(&notes);
  for (const std::string backend : {"cuda", "opencl"}) {
    const bool present = std::ranges::any_of(devices, [&](auto& d) { return d.backend == backend; });
    const bool noted = std::ranges::any_of(notes, [&](auto& n) { return n.starts_with(backend); });
    EXPECT_NE(present, noted) << backend;
  }
}

TEST(DeviceList, UnknownIdsNameWhatThereIs) {
  for (const char* id : {"cuda:77", "cuda:GPU-00000000-0000-0000-0000-000000000000", "opencl:9:9", "hots", "vulkan"}) {
    EXPECT_THAT(error_of([&] { open_device(id); }), testing::AllOf(HasSubstr(id), HasSubstr("host"))) << id;
  }
}

TEST(DeviceList, TheBestDeviceFitsTheProblemsLanguages) {
  Problem problem;
  problem.name = "p";
  KernelSource source;
  source.language = Language::fortran;
  problem.kernel().sources = {source};
  EXPECT_EQ(open_device("", &problem)->info().backend, "host");
  problem.kernels.resize(2);  // no device compiles both
  problem.kernels[1].sources = {{Language::hip, {}, "", {}}};
  EXPECT_THAT(error_of([&] { open_device("", &problem); }), testing::AllOf(HasSubstr("\"p\""), HasSubstr("hip")));
}

TEST(DeviceList, SignaturesFollowTheArguments) {
  std::vector<Argument> arguments(2);
  arguments[0].type = ElementType::float64;
  arguments[0].name = "x";
  arguments[1].kind = Argument::Kind::scalar;
  arguments[1].type = ElementType::int32;
  const auto signature = signature_of(arguments);
  ASSERT_EQ(signature.size(), 2u);
  EXPECT_EQ(signature[0].type, ElementType::float64);
  EXPECT_EQ(signature[0].name, "x") << "messages name it";
  EXPECT_EQ(signature[1].kind, Argument::Kind::scalar);
}

}  // namespace
