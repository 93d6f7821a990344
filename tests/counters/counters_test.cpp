// Hardware counters: the observer over a fake libcuda and a fake libcupti, which keep the rules of the real ones.
#include "counters/counters_observer.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "counters/cupti.hpp"
#include "device/cuda/cuda_platform.hpp"
#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "measure/observers/cupti_api.hpp"
#include "measure/observers/observer_registry.hpp"
#include "measure/runner.hpp"
#include "parameters.hpp"
#include "problem/tables/counter_names.hpp"
#include "problem/tables/quantity.hpp"

namespace ergotune {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string kCuda = ERGOTUNE_BINARY_DIR "/tests/fakes/cuda/libcuda.so.1";
const std::string kCupti = ERGOTUNE_BINARY_DIR "/tests/fakes/cupti/libcupti.so.13";

Problem add_one() {
  Problem problem;
  problem.name = "add_one";
  Parameter block = test::listed("block", {32, 64});
  problem.parameters.push_back(block);
  KernelSource source;
  source.language = Language::cuda;
  source.text = "add_one";
  problem.kernel().sources.push_back(source);
  problem.kernel().function = Template::parse("add_one");
  Argument x, n;
  x.name = "x";
  x.type = ElementType::int32;
  x.count = Expression::parse("8");
  x.access = Access::read_write;
  n.name = "n";
  n.kind = Argument::Kind::scalar;
  n.type = ElementType::int32;
  n.value = Expression::parse("8");
  problem.kernel().arguments = {x, n};
  problem.kernel().launch.block = {Expression::parse("block")};
  problem.kernel().launch.global = {Expression::parse("64")};
  return problem;
}

class Counters : public testing::Test {
 protected:
  void SetUp() override {
    setenv("ERGOTUNE_CUDA", kCuda.c_str(), 1);
    setenv("ERGOTUNE_CUPTI", kCupti.c_str(), 1);
    if (cuda::api().library_name() != kCuda) GTEST_SKIP() << "another test of this process has opened a driver";
    ASSERT_TRUE(cuda::api().usable()) << cuda::api().problem();
    ASSERT_TRUE(cupti::api().usable()) << cupti::api().problem();
    cuda_ = dlopen(kCuda.c_str(), RTLD_NOW | RTLD_NOLOAD);
    cupti_ = dlopen(kCupti.c_str(), RTLD_NOW | RTLD_NOLOAD);
    function<void()>(cuda_, "fake_cuda_reset")();
    function<void()>(cupti_, "fake_cupti_reset")();
    options_.max_repeats = 7;
  }
  void TearDown() override {
    for (const char* variable :
         {"FAKE_CUPTI_FAIL", "FAKE_CUPTI_DROPPED", "FAKE_CUPTI_UNSUPPORTED", "FAKE_CUPTI_MORE_PASSES"})
      unsetenv(variable);
  }
  template <class F>
  static F* function(void* library, const char* name) {
    return reinterpret_cast<F*>(dlsym(library, name));
  }
  long launches() const { return function<long(const char*)>(cuda_, "fake_cuda_count")("kernel"); }
  long calls(const char* name) const { return function<long(const char*)>(cupti_, "fake_cupti_count")(name); }
  long launches_while_enabled() const { return function<long()>(cupti_, "fake_cupti_launches_while_enabled")(); }
  bool enabled() const { return function<bool()>(cupti_, "fake_cupti_enabled")(); }

  static ObserverSpec asking_for(std::vector<Value> metrics) {
    ObserverSpec spec{"counters", {}, {}};
    if (!metrics.empty()) spec.options["metrics"] = std::move(metrics);
    return spec;
  }
  Measurement measure(std::vector<Value> metrics = {}, const std::string& id = "cuda:0") {
    device_ = open_device(id);
    problem_ = add_one();
    problem_.observers = {asking_for(std::move(metrics))};
    Runner runner(*device_, problem_, options_);
    notes_ = runner.notes();
    return runner.run({Value(32)}, Binary{"add_one", "add_one", ""});
  }
  std::string refusal(std::vector<Value> metrics = {}, const std::string& id = "cuda:0") {
    try {
      measure(std::move(metrics), id);
    } catch (const UserError& error) {
      return error.what();
    } catch (const Error& error) {
      return std::string("no user's mistake: ") + error.what();
    }
    return "none";
  }

  void *cuda_ = nullptr, *cupti_ = nullptr;
  MeasureOptions options_;
  Problem problem_;
  std::unique_ptr<Device> device_;
  std::vector<std::string> notes_;
};

TEST_F(Counters, TheUsualTwentyTakeTwoLaunchesAfterTheTime) {
  const Measurement found = measure();
  ASSERT_EQ(found.status, Status::ok) << found.message;
  EXPECT_THAT(found.warnings, IsEmpty());
  EXPECT_EQ(usual_counters().size(), 20u);
  for (const std::string& name : usual_counters()) {
    ASSERT_TRUE(found.quantities.contains(name)) << name;
    const Quantity& quantity = found.quantities.at(name);
    EXPECT_EQ(quantity.method, "cupti, 2 passes");
    EXPECT_EQ(quantity.sensor, "cupti:GH100");
    EXPECT_EQ(quantity.provenance, Provenance::measured);
  }
  EXPECT_EQ(found.quantities.at("inst_executed").value, 1000) << "of one launch";
  EXPECT_EQ(launches_while_enabled(), 2);
  EXPECT_EQ(calls("cuptiRangeProfilerStart"), 2);
  EXPECT_FALSE(enabled()) << "nothing is watched when the next configuration is timed";
  EXPECT_TRUE(found.quantities.contains("time"));
  EXPECT_THAT(
      notes_,
      ElementsAre(
          "20 hardware counters of GH100: 2 further launches of each configuration, after its time and energy"));
}

TEST_F(Counters, NamesOfPapersAndOfTheChipAreReportedAsRequested) {
  const Measurement found = measure({"ipc", "dram__bytes_read.sum", "l2_tex_read_hit_rate", "issued_ipc"});
  // the fake's metrics are worth the length of their names
  EXPECT_EQ(found.quantities.at("dram__bytes_read.sum").value, std::string("dram__bytes_read.sum").size());
  EXPECT_EQ(found.quantities.at("issued_ipc").value,
            4.0 * std::string("smsp__inst_issued.avg.per_cycle_active").size());
  EXPECT_DOUBLE_EQ(found.quantities.at("l2_tex_read_hit_rate").value,
                   double(std::string("lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum").size()) /
                       std::string("lts__t_sectors_srcunit_tex_op_read.sum").size());
  EXPECT_EQ(found.quantities.at("ipc").method, "cupti, 1 pass");
  EXPECT_EQ(found.quantities.at("ipc").standard_error, 0);
  EXPECT_EQ(found.quantities.at("ipc").n, 1);
  EXPECT_FALSE(found.quantities.contains("inst_executed"));
}

TEST_F(Counters, ARoundOfSeveralLaunchesIsCountedAsAWhole) {
  device_ = open_device("cuda:0");
  const cupti::ProfiledDevice profiled(0);
  const cupti::MetricSet set("GH100", {"smsp__inst_executed.sum"});
  const auto kernel = device_->load({"add_one", "add_one", ""});
  const auto x = device_->allocate(32);
  KernelArgument pointer, count;
  pointer.buffer = x.get();
  count.scalar.resize(4);
  kernel->bind({}, {pointer, count});
  cupti::CountedIterations rounds(profiled, set, false);
  rounds.begin_pass();
  device_->launch(*kernel, 3);
  device_->synchronise();
  rounds.end_pass();
  EXPECT_THAT(rounds.values(), ElementsAre(3000.0));
  EXPECT_EQ(calls("cuptiRangeProfilerPushRange"), 1);
}

TEST_F(Counters, TheObserverKnowsWhetherARoundIsOneLaunch) {
  device_ = open_device("cuda:0");
  for (const std::size_t launches : {1, 2}) {
    const auto observer = make_counters_observer({"inst_executed"}, device_->info(), &notes_);
    EXPECT_TRUE(observer->results().empty());
    ObservedConfiguration configuration;
    configuration.iteration_launches = launches;
    observer->register_configuration(configuration);
    const long before = calls("cuptiRangeProfilerPushRange");
    observer->begin_pass(0);
    EXPECT_EQ(calls("cuptiRangeProfilerPushRange") - before, launches == 1 ? 0 : 1)
        << "several are a range of their own";
  }
  EXPECT_THAT(notes_, testing::Each(HasSubstr("1 further launch")));
  EXPECT_FALSE(enabled()) << "though no pass came to its end";
}

TEST_F(Counters, WhatAChipLacksIsSaidOnceAndNeverANumber) {
  const Measurement found = measure({}, "cuda:1");
  EXPECT_FALSE(found.quantities.contains("dram_read_bytes"));
  EXPECT_TRUE(found.quantities.contains("ipc"));
  EXPECT_THAT(notes_, ElementsAre(AllOf(HasSubstr("15 hardware counters of GB202"),
                                        HasSubstr("dram_read_bytes, dram_write_bytes"))));
  EXPECT_THAT(found.warnings, IsEmpty());
  EXPECT_THAT(refusal({"dram_read_bytes"}, "cuda:1"), HasSubstr("GB202"));
}

TEST_F(Counters, WhoMayNotCountIsReportedBeforeAnythingRuns) {
  const struct {
    const char* fail;
    const char* words;
  } cases[] = {
      {"cuptiProfilerGetCounterAvailability=35", "NVreg_RestrictProfilingToAdminUsers=0"},
      {"cuptiProfilerGetCounterAvailability=40", "administrators only"},
      {"cuptiProfilerGetCounterAvailability=26", "another profiler"},
      {"cuptiProfilerGetCounterAvailability=39", "another profiler"},
      {"cuptiProfilerInitialize=38", "no range profiler"},
      {"cuptiProfilerInitialize=27", "no range profiler"},
      {"cuptiProfilerInitialize=33", "virtual GPU"},
      {"cuptiProfilerInitialize=36", "another profiler"},
      {"cuptiProfilerInitialize=14", "another CUDA than the driver"},
      {"cuptiProfilerInitialize=41", "confidential computing"},
      {"cuptiProfilerInitialize=42", "mining"},
      {"cuptiProfilerInitialize=43", "MIG"},
      {"cuptiProfilerInitialize=44", "SLI"},
      {"cuptiProfilerInitialize=45", "WSL"},
      {"cuptiProfilerHostInitialize=46", "does not know the chip"},
      {"cuptiDeviceGetChipName=999", "no user's mistake: cuptiDeviceGetChipName: CUPTI_ERROR_OTHER (999)"},
      {"cuptiProfilerHostGetConfigImage=8", "no user's mistake: cuptiProfilerHostGetConfigImage"},
      {"cuptiProfilerHostGetConfigImageSize=8", "no user's mistake: cuptiProfilerHostGetConfigImageSize"},
      {"cuptiProfilerHostGetNumOfPasses=1", "no user's mistake: cuptiProfilerHostGetNumOfPasses"},
  };
  for (const auto& one : cases) {
    setenv("FAKE_CUPTI_FAIL", one.fail, 1);
    EXPECT_THAT(refusal(), HasSubstr(one.words)) << one.fail;
  }
}

TEST_F(Counters, ABoardThatCannotBeCountedOnSaysWhy) {
  const std::pair<const char*, const char*> cases[] = {
      {"1", "begins with compute capability 7.5"}, {"2", "SLI is on"}, {"3", "a virtual GPU"},
      {"4", "confidential computing is on"},       {"5", "mining"},    {"6", "under WSL"}};
  for (const auto& [which, words] : cases) {
    setenv("FAKE_CUPTI_UNSUPPORTED", which, 1);
    EXPECT_THAT(refusal(), AllOf(HasSubstr("the device has no hardware counters to read: "), HasSubstr(words)));
  }
}

TEST_F(Counters, TroubleWhileCountingLeavesTimeAndSaysSo) {
  for (const char* name : {"cuptiRangeProfilerEnable", "cuptiRangeProfilerGetCounterDataSize",
                           "cuptiRangeProfilerCounterDataImageInitialize", "cuptiRangeProfilerSetConfig",
                           "cuptiRangeProfilerStart", "cuptiRangeProfilerStop", "cuptiRangeProfilerDecodeData",
                           "cuptiRangeProfilerGetCounterDataInfo", "cuptiProfilerHostEvaluateToGpuValues"}) {
    for (const int code : {1, 7, 8, 9, 26, 35, 999}) {
      setenv("FAKE_CUPTI_FAIL", (std::string(name) + "=" + std::to_string(code)).c_str(), 1);
      const Measurement found = measure({"ipc", "inst_executed"});
      EXPECT_EQ(found.status, Status::ok) << name << " " << found.message;
      EXPECT_TRUE(found.quantities.contains("time"));
      EXPECT_FALSE(found.quantities.contains("ipc")) << name;
      EXPECT_THAT(found.warnings, ElementsAre(AllOf(HasSubstr("no hardware counters: " + std::string(name)),
                                                    HasSubstr("(" + std::to_string(code) + ")"))));
      EXPECT_FALSE(enabled()) << name;
    }
  }
}

TEST_F(Counters, LostOrIncompleteCountersAreNoNumbers) {
  setenv("FAKE_CUPTI_DROPPED", "1", 1);
  EXPECT_THAT(measure({"ipc"}).warnings, ElementsAre(HasSubstr("dropped the counters of 1 ranges")));
  unsetenv("FAKE_CUPTI_DROPPED");
  setenv("FAKE_CUPTI_MORE_PASSES", "1", 1);
  const Measurement found = measure({"ipc"});
  EXPECT_THAT(found.warnings, ElementsAre(HasSubstr("more passes")));
  EXPECT_FALSE(found.quantities.contains("ipc"));
}

TEST(CuptiBlocks, AreAsLongAsTheHeadersSay) {
  using namespace cupti;
  EXPECT_EQ(sizeof(Initialize), 16u);
  EXPECT_EQ(block(&ChipName::name).size, 32u);
  EXPECT_EQ(block(&DeviceSupported::api).size, 52u);
  EXPECT_EQ(block(&CounterAvailability::image).size, 40u);
  EXPECT_EQ(block(&HostInitialize::host).size, 48u);
  EXPECT_EQ(block(&HostDeinitialize::host).size, 24u);
  EXPECT_EQ(block(&HostBaseMetrics::count).size, 48u);
  EXPECT_EQ(block(&HostProperties::type).size, 60u);
  EXPECT_EQ(block(&HostAddMetrics::count).size, 40u);
  EXPECT_EQ(block(&HostImageSize::bytes).size, 32u);
  EXPECT_EQ(block(&HostImage::image).size, 40u);
  EXPECT_EQ(block(&HostPasses::passes).size, 40u);
  EXPECT_EQ(block(&HostEvaluate::values).size, 72u);
  EXPECT_EQ(block(&RangeEnable::ranges).size, 32u);
  EXPECT_EQ(block(&RangeOnly::ranges).size, 24u);
  EXPECT_EQ(block(&RangeConfig::target_nesting_level).size, 90u);
  EXPECT_EQ(block(&RangeStop::all_passes_submitted).size, 41u);
  EXPECT_EQ(block(&RangePush::name).size, 32u);
  EXPECT_EQ(block(&RangeDecode::dropped).size, 32u);
  EXPECT_EQ(block(&RangeDataSize::bytes).size, 64u);
  EXPECT_EQ(block(&RangeDataInfo::ranges).size, 40u);
}

TEST(CounterObservers, AreDescribedAndMeasureTheMetricsThatAreNamed) {
  std::vector<std::string> names;
  for (const auto& observer : observers()) {
    names.push_back(observer.name);
    for (const auto& name : observer.quantities) EXPECT_NE(quantity_info(name), nullptr) << name;
    for (const auto& option : observer.options) EXPECT_FALSE(option.help.empty()) << option.name;
  }
  EXPECT_THAT(names, testing::IsSupersetOf({"counters", "perf"}));
  EXPECT_EQ(quantities_of({"counters", {}, {}}).size(), 20u);
  EXPECT_THAT(quantities_of({"counters", {{"metrics", {"ipc", "dram__bytes_read.sum"}}}, {}}),
              ElementsAre("ipc", "dram__bytes_read.sum"));
  EXPECT_THAT(quantities_of({"perf", {{"metrics", {"cycles"}}}, {}}), ElementsAre("cycles"));
}

}  // namespace
}  // namespace ergotune
