// What compilers that were killed have left in the folder for such things.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "device/device.hpp"
#include "device_fixtures.hpp"

namespace ergotune {
namespace {

namespace fs = std::filesystem;

/// Folders of this name and age, hours, that are still there after a compilation.
bool stays(const std::string& name, int age) {
  std::string here = (fs::temp_directory_path() / "ergotune-leftovers-XXXXXX").string();
  if (!::mkdtemp(here.data())) return false;
  ::setenv("TMPDIR", here.c_str(), 1);
  const fs::path folder = fs::path(here) / name;
  fs::create_directory(folder);
  std::ofstream(folder / "kernel.c") << "void f(void) {}";
  fs::last_write_time(folder, fs::file_time_type::clock::now() - std::chrono::hours(age));
  CompileJob job;
  job.language = Language::c;
  job.source = "void f(void) {}";
  job.source_name = "f.c";
  job.function = "f";
  open_compiler("host")->compile(job);
  const bool there = fs::exists(folder / "kernel.c");
  fs::remove_all(here);
  return there;
}

TEST(HostLeftovers, AreRemovedAfterADay) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // once in a process: each look has its own
  EXPECT_EXIT(::exit(stays("ergotune-host-aB3xYz", 25)), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(::exit(stays("ergotune-host-aB3xYz", 1)), testing::ExitedWithCode(1), "")
      << "somebody may be compiling there";
  EXPECT_EXIT(::exit(stays("somebodys-host-aB3xYz", 25)), testing::ExitedWithCode(1), "");
}

}  // namespace
}  // namespace ergotune
