// What compilers that were killed have left in the folder for such things.
#include <gtest/gtest.h>
#include <stdlib.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "device/device.hpp"
#include "temporary_folder.hpp"

namespace ergotune {
namespace {

namespace fs = std::filesystem;

/// Folders of this name and age, hours, that are still there after a compilation.
bool stays(const std::string& name, int age) {
  const TemporaryFolder here;
  ::setenv("TMPDIR", here.path().c_str(), 1);
  const fs::path folder = here.path() / name;
  fs::create_directory(folder);
  std::ofstream(folder / "kernel.c") << "void f(void) {}";
  fs::last_write_time(folder, fs::file_time_type::clock::now() - std::chrono::hours(age));
  CompileJob job;
  job.language = Language::c;
  job.source = "void f(void) {}";
  job.source_name = "f.c";
  job.function = "f";
  open_compiler("host")->compile(job);
  return fs::exists(folder / "kernel.c");
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
