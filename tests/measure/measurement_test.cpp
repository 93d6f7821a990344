#include "ergotune/result.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "device/device.hpp"
#include "measure/code_restrictions.hpp"

namespace ergotune {
namespace {

TEST(Measurement, StatusNamesGoBothWays) {
  for (const Status status : {Status::ok, Status::compile_error, Status::launch_error, Status::runtime_error,
                              Status::timeout, Status::wrong_result, Status::not_converged, Status::unsupported}) {
    EXPECT_EQ(status_from(to_string(status)), status);
  }
  EXPECT_FALSE(status_from("fine"));
  EXPECT_TRUE(usable(Status::not_converged));
  EXPECT_FALSE(usable(Status::wrong_result));
}

TEST(Measurement, ValuesThatAreNoNumbersAreNoValues) {
  Measurement m;
  m.quantities["time"] = {0.5, 0.01, 7, "", "", Provenance::measured};
  m.quantities["energy"] = {std::numeric_limits<double>::quiet_NaN(), 0, 1, "", "", Provenance::measured};
  m.metrics["gflops"] = 12;
  m.metric_errors["gflops"] = 0.5;
  EXPECT_EQ(m.value("time"), 0.5);
  EXPECT_EQ(m.standard_error("time"), 0.01);
  EXPECT_FALSE(m.value("energy"));
  EXPECT_EQ(m.value("gflops"), 12);
  EXPECT_EQ(m.standard_error("gflops"), 0.5);
  EXPECT_FALSE(m.value("power"));
  m.metrics["alone"] = 3;
  EXPECT_EQ(m.standard_error("alone"), 0) << "nobody tells one";
  EXPECT_EQ(m.standard_error("power"), 0);
}

TEST(CompileStatus, IsTheCompilersErrorButWhereTheDeviceSaysMore) {
  EXPECT_EQ(compile_status(DeviceError(DeviceFault::unsupported, "")), Status::unsupported);
  EXPECT_EQ(compile_status(DeviceError(DeviceFault::timeout, "")), Status::timeout);
  for (const DeviceFault fault :
       {DeviceFault::compile, DeviceFault::launch, DeviceFault::runtime, DeviceFault::out_of_memory})
    EXPECT_EQ(compile_status(DeviceError(fault, "")), Status::compile_error);
  EXPECT_EQ(compile_status(std::runtime_error("")), Status::compile_error);
}

}  // namespace
}  // namespace ergotune
