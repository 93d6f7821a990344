// What buffers are filled with is the same in every release, and halves are rounded where they must be; options of observers that
// need sensors; which outputs are compared.
#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "ergotune/base/error.hpp"
#include "ergotune/measure/observer_registry.hpp"
#include "kept_numbers.hpp"
#include "measure/arguments.hpp"
#include "measure/runner_fixture.hpp"

namespace ergotune {
namespace {

using testing::HasSubstr;

template <class T>
std::vector<double> filled(ElementType type, Fill fill, std::size_t position = 0) {
  Argument argument;
  argument.name = "a";
  argument.type = type;
  argument.fill = std::move(fill);
  const auto bytes = initial_contents(argument, 4, position);
  std::vector<T> values(4);
  EXPECT_EQ(bytes.size(), sizeof(T) * values.size());
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return {values.begin(), values.end()};
}

TEST(KeptFills, AreTheSameInEveryRelease) {
  Fill fill;
  fill.seed = 7;
  fill.low = 2;
  fill.high = 5;
  expect_kept(filled<float>(ElementType::float32, fill), {2.166081429, 2.516347647, 4.152728558, 3.281629562});
  expect_kept(filled<double>(ElementType::float64, fill, 3), {3.85194801, 2.542793739, 3.805768639, 2.590978925});
  fill.low = -100;
  fill.high = 99;
  expect_kept(filled<std::int32_t>(ElementType::int32, fill), {-89, -66, 43, -15});
  expect_kept(filled<std::int8_t>(ElementType::int8, fill, 1), {-73, -2, 62, -3});
  fill.low = -1e30;
  fill.high = 1e30;
  expect_kept(filled<std::uint64_t>(ElementType::uint64, fill), {1.021219804e+18, 3.174977118e+18, 1.323694319e+19, 7.880630202e+18});
  expect_kept(filled<std::uint8_t>(ElementType::uint8, fill), {14, 44, 183, 109});
  fill.low = fill.high = 3;
  expect_kept(filled<std::int16_t>(ElementType::int16, fill), {3, 3, 3, 3});
}

TEST(KeptFills, HalvesAtTheirBounds) {
  for (const auto& [value, bits] : {std::pair{65519.999, 0x7bff}, {65520.0, 0x7c00}, {-65520.0, 0xfc00}, {6.103515625e-5, 0x0400},
                                    {6.1e-5, 0x03ff}, {0x1p-24, 1}, {0x1p-25, 0}, {0x1.8p-24, 2}, {1.0, 0x3c00}, {-2.0, 0xc000},
                                    {0.99999, 0x3c00}, {1.9998, 0x4000}, {0.1, 0x2e66}, {3.0, 0x4200}})
    EXPECT_EQ(half_from(value), bits) << value;
  EXPECT_EQ(half_from(NAN) & 0x7fffu, 0x7e00u);
  for (const auto& [bits, value] : {std::pair{0x7bff, 65504.0}, {0xfc00, double{-INFINITY}}, {0x0400, 0x1p-14}, {0x03ff, 0x3ffp-24},
                                    {1, 0x1p-24}, {0x3555, 0x1.554p-2}})
    EXPECT_EQ(half_to_double(static_cast<std::uint16_t>(bits)), value) << bits;
  EXPECT_TRUE(std::isnan(half_to_double(0x7c01)));
}

TEST(KeptFills, MoreThanTheMachineHasIsRefused) {
  Argument argument;
  argument.name = "a";
  argument.type = ElementType::float64;
  EXPECT_THROW(initial_contents(argument, std::size_t{1} << 50, 0), UserError);
}

std::string complaint(const ObserverSpec& spec) {
  DeviceInfo device;
  device.name = "a device";
  const MeasureOptions measure;
  try {
    std::vector<std::string> notes;
    const auto made = make_observer(spec, {device, measure, &notes});
    return fmt::format("{}", fmt::join(notes, ", "));
  } catch (const UserError& error) {
    return error.message();
  }
}

TEST(EnergyObserver, IsMadeOfTheSensorsThatAreNamed) {
  const Value sensor("command:sleep 60");
  EXPECT_EQ(complaint({"energy", {{"sensors", {sensor}}}, {}}), "energy by command:sleep 60 (output of sleep 60)");
  EXPECT_EQ(complaint({"energy", {{"sensors", {sensor}}, {"temperature", {0.0}}}, {}}), "energy by command:sleep 60 (output of sleep 60)");
  EXPECT_THAT(complaint({"energy", {{"sensors", {sensor}}, {"temperature", {50.0}}}, {}}),
      HasSubstr("\"ergotune temperature FILE\" finds out"));
  EXPECT_THAT(complaint({"energy", {}, {}}), HasSubstr("a device has no energy or power sensor"));
}

TEST(TraceObserver, ItsTimesAreSecondsAndItsFolderCanBeMade) {
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("ergotune-traces-{}", ::getpid());
  const auto trace = [&](double before, double seconds, double after) {
    return complaint({"trace",
                      {{"sensors", {Value("command:sleep 60")}}, {"folder", {Value(folder.string())}}, {"before", {before}},
                       {"seconds", {seconds}}, {"after", {after}}},
                      {}});
  };
  EXPECT_EQ(trace(0, 1, 0), "");
  EXPECT_TRUE(std::filesystem::is_directory(folder));
  EXPECT_EQ(trace(200, 300, 100), "") << "600 s in all";
  for (const auto& [before, seconds, after] : {std::array{-1.0, 1.0, 0.0}, {0.0, 0.0, 0.0}, {0.0, 1.0, -1.0}, {200.0, 301.0, 100.0}})
    EXPECT_THAT(trace(before, seconds, after), HasSubstr("600 in all at most")) << before;
  std::filesystem::remove_all(folder);
}

struct TwoOutputs : test::RunnerTest {
  void SetUp() override {
    problem.kernel().arguments.push_back(test::buffer("c", Access::write));
    device.kernels["double_32"] = with_c(1);
    device.kernels["double_64"] = with_c(2);
  }
  static test::FakeKernel with_c(float value) {
    return [value](const test::FakeLaunch& launch) {
      for (std::size_t i = 0; i < test::kCount; ++i) launch.buffers[3]->floats()[i] = value;
      return test::right(1e-3)(launch);
    };
  }
  Status second() {
    Runner runner(device, problem, options);
    EXPECT_EQ(measure(runner, 32).status, Status::ok);
    return measure(runner, 64).status;
  }
};

TEST_F(TwoOutputs, AreAllComparedUnlessSomeAreNamed) {
  EXPECT_EQ(second(), Status::wrong_result) << "c is another";
  problem.verification.outputs = {"b"};
  EXPECT_EQ(second(), Status::ok) << "c is not asked for";
  problem.verification.outputs = {"b", "c"};
  EXPECT_EQ(second(), Status::wrong_result);
}

}  // namespace
}  // namespace ergotune
