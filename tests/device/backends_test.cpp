// The registry of backends: nothing else knows them by name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "device/backend.hpp"
#include "ergotune/base/error.hpp"

namespace ergotune {
namespace {

using ::testing::HasSubstr;

TEST(Backends, EachDeviceBelongsToTheBackendThatItsIdBeginsWith) {
  for (const auto& backend : device::backends()) {
    std::string note;
    for (const auto& info : backend.list(&note)) {
      EXPECT_EQ(info.backend, backend.name);
      EXPECT_TRUE(info.id == backend.name || info.id.starts_with(std::string(backend.name) + ":")) << info.id;
      EXPECT_EQ(open_device(info.id)->info().id, info.id);
    }
  }
}

TEST(Backends, ALanguageIsCompiledByOneOfThem) {
  std::set<std::string_view> names;
  std::set<Language> languages;
  for (const auto& backend : device::backends()) {
    EXPECT_TRUE(names.insert(backend.name).second) << backend.name;
    EXPECT_FALSE(backend.languages.empty()) << backend.name;
    for (const Language language : backend.languages)
      EXPECT_TRUE(languages.insert(language).second) << to_string(language);
  }
  EXPECT_THROW(device::backend_named("vulkan"), Error);
}

TEST(Backends, TheFirstLanguageThatAKernelHasIsTaken) {
  Kernel kernel;
  kernel.sources = {{Language::fortran, {}, "f", {}}, {Language::cpp, {}, "c", {}}};
  EXPECT_EQ(source_for_device(kernel, "host").language, Language::cpp);
  EXPECT_FALSE(has_source_for(kernel, "cuda"));
  try {
    source_for_device(kernel, "opencl");
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no source in opencl for a device of kind opencl"));
    EXPECT_THAT(error.what(), HasSubstr("it has: fortran, cpp"));
  }
}

// Two kernels that only different devices compile have no device.
TEST(Backends, ADeviceIsTheBestOnlyWhenItCompilesEveryKernel) {
  Problem problem;
  problem.kernels.resize(2);
  problem.kernels[0].sources = {{Language::c, {}, "", {}}};
  problem.kernels[1].sources = {{Language::hip, {}, "", {}}};
  EXPECT_THROW(open_device("", &problem), UserError);
  problem.kernels[1].sources = {{Language::cpp, {}, "", {}}};
  EXPECT_EQ(open_device("", &problem)->info().backend, "host");
}

}  // namespace
}  // namespace ergotune
