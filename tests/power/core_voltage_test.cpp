#include "power/sensors/core_voltage.hpp"
#include "temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace ergotune {
namespace {

constexpr const char* kPrinted =
    "==============NVSMI LOG==============\n"
    "Driver Version                            : 510.47.03\n"
    "GPU 00000000:01:00.0\n"
    "    Voltage\n"
    "        Graphics                          : 843.750 mV\n";

TEST(CoreVoltage, ComesFromTheProgramThatIsNamed) {
  const TemporaryFolder folder;
  const auto program = folder.path() / "smi";
  std::ofstream(program) << "#!/bin/sh\n[ \"$2\" = GPU-7 ] && [ \"$5\" = VOLTAGE ] && cat <<'E'\n" << kPrinted << "E\n";
  ::chmod(program.c_str(), 0755);
  setenv("ERGOTUNE_NVIDIA_SMI", program.c_str(), 1);
  EXPECT_DOUBLE_EQ(read_core_voltage("GPU-7").value_or(0), 0.84375);
  EXPECT_FALSE(read_core_voltage("GPU-8")) << "the program fails";
  setenv("ERGOTUNE_NVIDIA_SMI", "/nowhere/smi", 1);
  EXPECT_FALSE(read_core_voltage("GPU-7"));
  unsetenv("ERGOTUNE_NVIDIA_SMI");
}

TEST(CoreVoltage, OfATegraIsItsRegulators) {
  const TemporaryFolder folder;
  const auto write = [&](const char* name, const char* text) {
    const auto file = folder.path() / "sys/class/regulator" / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  write("regulator.0/microvolts", "800000\n");  // of no name
  write("regulator.1/name", "vdd-cpu\n");
  write("regulator.1/microvolts", "900000\n");
  write("regulator.2/name", "vdd-gpu\n");
  write("regulator.2/microvolts", "712500\n");
  setenv("ERGOTUNE_SYSFS_ROOT", folder.path().c_str(), 1);
  EXPECT_DOUBLE_EQ(read_core_voltage("").value_or(0), 0.7125);
  for (const auto& [text, volts] :
       {std::pair{"100000", 0.0}, {"100500", 0.1005}, {"2999999", 2.999999}, {"3000000", 0.0}, {"off", 0.0}}) {
    write("regulator.2/microvolts", text);
    EXPECT_DOUBLE_EQ(read_core_voltage("").value_or(0), volts) << text;
  }
  unsetenv("ERGOTUNE_SYSFS_ROOT");
  EXPECT_FALSE(voltage_in("Graphics : 5000 mV"));
}

}  // namespace
}  // namespace ergotune
