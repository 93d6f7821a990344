// ergotuned without its socket: who is refused what, leases, limits, and that everything goes back.
#include "helper/helper_service.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ergotune/error.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "power/guardian_host.hpp"

namespace ergotune::helper {
namespace {

const guardian_host::Host kHost;

using control_trees::kTegraGpu;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::SizeIs;
constexpr auto kCore = ControlQuantity::core_clock_mhz;

struct HelperService : ::testing::Test {
  control_trees::Tree tree, state;
  ControlEnvironment environment;
  std::vector<std::string> log;
  std::unique_ptr<Service> service;
  double now = 1000;
  struct Client {
    std::uint64_t number = 0, nonce = 0, sequence = 0;
  };

  void SetUp() override {
    control_trees::add_tegra(tree);
    environment.sysfs_root = tree.root();
    environment.nvml_library = "/nowhere/libnvidia-ml.so.1";
    environment.state_folder = state.root() / "state";
    start("[[allow]]\nusers=[1000, 1001]\ndevices=[\"tegra\"]\ncore_clock_mhz=[400, 1100]\n");
  }
  void start(const std::string& policy) {
    service = std::make_unique<Service>(parse_policy("lease_seconds=10\nchanges_per_second=2\nburst=5\n" + policy, "p"),
                                        Devices::of(environment), [this](const auto& line) { log.push_back(line); });
  }
  Client come(uid_t user, pid_t pid = 42) {
    Client client;
    client.nonce = 0xabc0 + user;
    std::string hello;
    client.number = service->connect({pid, user, {}}, client.nonce, hello);
    Header header;
    EXPECT_TRUE(decode_answer(hello, header));
    EXPECT_EQ(header.nonce, client.nonce);
    EXPECT_EQ(header.sequence, 0u);
    return client;
  }
  Answer ask(Client& client, const Request& request) {
    Header header;
    const auto answer =
        decode_answer(service->handle(client.number, encode(client.nonce, ++client.sequence, request), now), header);
    if (!answer) ADD_FAILURE() << "the connection was closed";
    return answer.value_or(DoneAnswer{ControlStatus::failed, "closed", 0});
  }
  DoneAnswer done(Client& client, const Request& request) { return std::get<DoneAnswer>(ask(client, request)); }
  ControlStatus status(Client& client, const Request& request) { return done(client, request).status; }
  std::string clock() { return tree.get(std::string(kTegraGpu) + "/max_freq"); }
};

TEST_F(HelperService, LeasesSetsAndPutsBack) {
  auto client = come(1000);
  const auto devices = std::get<DevicesAnswer>(ask(client, ListRequest{})).devices;
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_TRUE(devices[0].allowed);
  const auto range = std::get<RangeAnswer>(ask(client, RangeRequest{"tegra", kCore})).range;
  EXPECT_EQ(range.low, 408);
  EXPECT_EQ(range.high, 1020) << "narrowed to the policy";
  EXPECT_EQ(status(client, SetRequest{"tegra", kCore, 1020}), ControlStatus::no_permission) << "without a lease";
  const auto lease = done(client, AcquireRequest{"tegra", "tune", 0, false});
  EXPECT_EQ(lease.status, ControlStatus::ok);
  EXPECT_EQ(lease.seconds, 10);
  EXPECT_EQ(status(client, SetRequest{"tegra", kCore, 1020}), ControlStatus::ok);
  EXPECT_EQ(clock(), "1020000000");
  EXPECT_EQ(status(client, ReleaseRequest{"tegra"}), ControlStatus::ok);
  EXPECT_EQ(clock(), "1300500000");
  EXPECT_THAT(log, Contains(HasSubstr("uid 1000 pid 42: set core_clock_mhz of tegra to 1020: ok")));
}

TEST_F(HelperService, RefusesAClockOutOfThePolicysRange) {
  auto client = come(1000);
  ASSERT_EQ(status(client, AcquireRequest{"tegra", "tune", 0, false}), ControlStatus::ok);
  for (const double clock : {1300.5, 306.0, 1e9, -1.0})
    EXPECT_EQ(status(client, SetRequest{"tegra", kCore, clock}), ControlStatus::invalid_value) << clock;
  EXPECT_EQ(status(client, SetRequest{"tegra", ControlQuantity::power_limit_w, 20}), ControlStatus::no_permission);
  EXPECT_EQ(clock(), "1300500000");
}

TEST_F(HelperService, ALeaseEndsWithItsTimeUnlessItIsRenewed) {
  auto client = come(1000);
  ASSERT_EQ(status(client, AcquireRequest{"tegra", "tune", 4, false}), ControlStatus::ok);
  ASSERT_EQ(status(client, SetRequest{"tegra", kCore, 1020}), ControlStatus::ok);
  now += 3;
  EXPECT_EQ(status(client, RenewRequest{"tegra"}), ControlStatus::ok);
  EXPECT_NEAR(service->next_expiry(now), 4, 1e-9);
  now += 3.9;
  service->expire(now);
  EXPECT_EQ(clock(), "1020000000");
  now += 0.2;
  service->expire(now);
  EXPECT_EQ(clock(), "1300500000");
  EXPECT_THAT(done(client, SetRequest{"tegra", kCore, 1020}).message, HasSubstr("run out"));
  EXPECT_EQ(clock(), "1300500000");
}

TEST_F(HelperService, NoLeaseLastsLongerThanThePolicySays) {
  auto client = come(1000);
  EXPECT_EQ(done(client, AcquireRequest{"tegra", "tune", 100000, false}).seconds, 10);
}

TEST_F(HelperService, LimitsTheRateOfChanges) {
  auto client = come(1000);
  ASSERT_EQ(status(client, AcquireRequest{"tegra", "tune", 0, false}), ControlStatus::ok);
  int accepted = 0;
  for (int i = 0; i < 20; ++i)
    accepted += status(client, SetRequest{"tegra", kCore, i % 2 ? 408.0 : 510.0}) == ControlStatus::ok;
  EXPECT_EQ(accepted, 5) << "the burst";
  now += 1;
  accepted = 0;
  for (int i = 0; i < 20; ++i)
    accepted += status(client, SetRequest{"tegra", kCore, i % 2 ? 408.0 : 510.0}) == ControlStatus::ok;
  EXPECT_EQ(accepted, 2) << "two a second";
}

TEST_F(HelperService, LimitsTheRateOfLeases) {
  auto client = come(1000);
  int refused = 0;
  for (int i = 0; i < 40; ++i)
    refused += status(client, AcquireRequest{"nothing", "spam", 0, false}) == ControlStatus::timeout;
  EXPECT_GE(refused, 30);
}

// B10: whoever connects anew for each lease has no other allowance.
TEST_F(HelperService, LimitsTheRateOfLeasesOfAUserOverAllConnections) {
  int taken = 0;
  for (int i = 0; i < 100; ++i) {
    auto client = come(1000);
    taken += status(client, AcquireRequest{"tegra", "again", 0, false}) == ControlStatus::ok;
    service->disconnect(client.number);
  }
  EXPECT_LE(taken, 40);
  auto other = come(1001);
  EXPECT_EQ(status(other, AcquireRequest{"tegra", "tune", 0, false}), ControlStatus::ok);
  service->disconnect(other.number);
  now += 60;
  auto later = come(1000);
  EXPECT_EQ(status(later, AcquireRequest{"tegra", "tune", 0, false}), ControlStatus::ok);
}

TEST_F(HelperService, ClosesOnReplayedForeignAndBrokenMessages) {
  for (int kind = 0; kind < 5; ++kind) {
    auto client = come(1000);
    ask(client, ListRequest{});
    const auto good = encode(client.nonce, client.sequence + 1, Request(ListRequest{}));
    std::string sent;
    switch (kind) {
      case 0:
        sent = encode(client.nonce, client.sequence, Request(ListRequest{}));
        break;  // sent again
      case 1:
        sent = encode(client.nonce + 1, client.sequence + 1, Request(ListRequest{}));
        break;  // recorded elsewhere
      case 2:
        sent = encode(client.nonce, client.sequence + 2, Request(ListRequest{}));
        break;  // one was left out
      case 3:
        sent = std::string(kMaxMessage + 1, 'x');
        break;
      case 4:
        sent = good.substr(0, good.size() - 1);
        break;
    }
    EXPECT_EQ(service->handle(client.number, sent, now), "") << kind;
    EXPECT_FALSE(service->handle(client.number, good, now).empty()) << "the caller closes; nothing else has happened";
  }
}

TEST_F(HelperService, OpensNothingThatAClientNames) {
  auto client = come(1000);
  for (const char* name : {"/etc", "nvml:/tmp/evil.so", "../tegra", "", "cpufreq", "tegra "})
    EXPECT_EQ(status(client, AcquireRequest{name, "x", 0, false}), ControlStatus::invalid_value) << name;
}

TEST_F(HelperService, TheAuditLogHasOneLinePerEventWhateverTheClientSends) {
  auto client = come(1000);
  ASSERT_EQ(status(client, AcquireRequest{"tegra", "tune\nuid 0 pid 1: forged", 0, false}), ControlStatus::ok);
  for (const auto& line : log) EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST_F(HelperService, TakingOverNeedsTheRulesWord) {
  auto client = come(1000);
  EXPECT_EQ(status(client, AcquireRequest{"tegra", "x", 0, true}), ControlStatus::no_permission);
  start("[[allow]]\nusers=[1000]\ndevices=[\"*\"]\ncore_clock_mhz=[400, 1100]\ntake_over=true\n");
  client = come(1000);
  EXPECT_EQ(status(client, AcquireRequest{"tegra", "x", 0, true}), ControlStatus::ok);
}

TEST_F(HelperService, ALogIsNotFilledByWhoMayDoNothing) {
  for (int i = 0; i < 2000; ++i) {
    auto client = come(1002);
    EXPECT_EQ(service->handle(client.number, "no request", now), "");
    service->disconnect(client.number);
    auto other = come(1002);
    EXPECT_EQ(status(other, AcquireRequest{"tegra", "tune", 0, false}), ControlStatus::no_permission);
    service->disconnect(other.number);
    now += 0.01;
  }
  EXPECT_LT(log.size(), 30u) << "4000 refusals in 20 s";
  auto honest = come(1000);
  EXPECT_EQ(status(honest, AcquireRequest{"tegra", "tune", 0, false}), ControlStatus::ok);
  EXPECT_THAT(log.back(), HasSubstr("uid 1000 pid 42: lease of tegra"));
  now += 60;
  come(1002);
  auto client = come(1002);
  service->handle(client.number, "no request", now);
  EXPECT_THAT(log, Contains(HasSubstr("more before it"))) << "how many were left out is told";
}

TEST_F(HelperService, APolicyWithNarrowerBoundsHoldsForARunningLease) {
  auto client = come(1000);
  ASSERT_EQ(status(client, AcquireRequest{"tegra", "tune", 0, false}), ControlStatus::ok);
  ASSERT_EQ(status(client, SetRequest{"tegra", kCore, 510}), ControlStatus::ok);
  service->set_policy(parse_policy("[[allow]]\nusers=[1000]\ndevices=[\"tegra\"]\ncore_clock_mhz=[400, 600]\n", "p"));
  EXPECT_EQ(service->leases(), 1u) << "what is set is still allowed";
  EXPECT_EQ(status(client, SetRequest{"tegra", kCore, 1020}), ControlStatus::invalid_value);
  service->set_policy(parse_policy("[[allow]]\nusers=[1000]\ndevices=[\"tegra\"]\ncore_clock_mhz=[400, 500]\n", "p"));
  EXPECT_EQ(service->leases(), 0u) << "and now it is not";
  EXPECT_EQ(clock(), "1300500000");
}

TEST_F(HelperService, ReadsBackWhatItHasSet) {
  auto client = come(1000);
  ASSERT_EQ(status(client, AcquireRequest{"tegra", "tune", 0, false}), ControlStatus::ok);
  ASSERT_EQ(status(client, SetRequest{"tegra", kCore, 510}), ControlStatus::ok);
  EXPECT_EQ(status(client, RenewRequest{"tegra"}), ControlStatus::ok);
  tree.put(std::string(kTegraGpu) + "/max_freq", "1300500000");  // somebody else
  EXPECT_EQ(status(client, RenewRequest{"tegra"}), ControlStatus::failed);
  EXPECT_EQ(status(client, SetRequest{"tegra", kCore, 510}), ControlStatus::ok);
  EXPECT_EQ(clock(), "510000000") << "set again, though it was set before";
}

TEST_F(HelperService, RequestsAreRationed) {
  auto client = come(1000);
  const auto accepted = [&](int tries) {
    int count = 0;
    for (int i = 0; i < tries; ++i) count += std::holds_alternative<DevicesAnswer>(ask(client, ListRequest{}));
    return count;
  };
  EXPECT_EQ(accepted(210), 200) << "at once";
  now += 0.5;
  EXPECT_EQ(accepted(60), 50) << "a hundred a second";
  now += 100;
  int acquired = 0;
  for (int i = 0; i < 15; ++i)
    acquired += status(client, AcquireRequest{"nothing", "x", 0, false}) == ControlStatus::invalid_value;
  EXPECT_EQ(acquired, 10) << "a lease counts for twenty";
}

}  // namespace
}  // namespace ergotune::helper
