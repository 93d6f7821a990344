// A control through ergotuned, over a real socket: what the daemon does for it, and whoever else may listen there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>
#include <utility>

#include "ergotune/power/guardian.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "power/control_backends.hpp"
#include "power/effective_user.hpp"
#include "power/helper_service.hpp"

namespace ergotune::helper {
namespace {

using control_trees::kTegraGpu;
using ::testing::HasSubstr;
constexpr auto kCore = ControlQuantity::core_clock_mhz;

/// What listens at a socket, for one client after the other: `answer` gets what comes; an empty answer ends the connection.
class Listener {
 public:
  using Answerer = std::function<std::string(std::string_view)>;
  Listener(const std::filesystem::path& path, std::string hello, Answerer answer)
      : hello_(std::move(hello)), answer_(std::move(answer)), socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.string().size());
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::chmod(path.c_str(), 0666), 0);
    EXPECT_EQ(::listen(socket_, 16), 0);
    thread_ = std::thread([this] { run(); });
  }
  ~Listener() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

 private:
  void run() {
    for (int client; (client = ::accept(socket_, nullptr, nullptr)) >= 0; ::close(client)) {
      std::string bytes(kMaxMessage, '\0');
      ::send(client, hello_.data(), hello_.size(), MSG_NOSIGNAL);
      for (ssize_t n; (n = ::recv(client, bytes.data(), bytes.size(), 0)) > 0;) {
        const std::string reply = answer_(std::string_view(bytes.data(), static_cast<std::size_t>(n)));
        if (reply.empty()) break;
        ::send(client, reply.data(), reply.size(), MSG_NOSIGNAL);
      }
    }
  }
  std::string hello_;
  Answerer answer_;
  int socket_;
  std::thread thread_;
};

struct HelperClient : ::testing::Test {
  control_trees::Tree tree, state;
  ControlEnvironment environment;
  std::string reason;
  std::atomic<std::size_t> asked = 0;
  std::atomic<bool> gone = false;
  std::unique_ptr<Service> service;
  std::uint64_t number = 0;
  std::unique_ptr<Listener> listener;

  void SetUp() override {
    control_trees::add_tegra(tree);
    environment.sysfs_root = tree.root();
    environment.nvml_library = "/nowhere/libnvidia-ml.so.1";
    environment.state_folder = state.root() / "state";
    environment.helper_socket = state.root() / "socket";
  }
  void TearDown() override { listener.reset(); }
  /// ergotuned, as far as a client sees it.
  void serve(const std::string& rule = "devices=[\"*\"]\ncore_clock_mhz=[400, 1100]", const std::string& bounds = "") {
    const auto policy = parse_policy(bounds + "[[allow]]\nusers=[" + std::to_string(::geteuid()) + "]\n" + rule, "p");
    service = std::make_unique<Service>(policy, Devices::of(environment), [](const auto&) {});
    std::string hello;
    number = service->connect({::getpid(), ::geteuid(), {}}, 77, hello);
    listen(hello, [this](std::string_view bytes) {
      ++asked;
      return gone ? std::string() : service->handle(number, bytes, 1000);
    });
  }
  void listen(const std::string& hello, const Listener::Answerer& answer) {
    listener = std::make_unique<Listener>(environment.helper_socket, hello, answer);
  }
  std::unique_ptr<Control> open(const std::string& key = kTegraGpu) {
    auto direct = open_control("tegra", environment);
    return open_helper_control(key, environment, reason, direct);
  }
  /// Why there is none.
  std::string refusal(const std::string& key = kTegraGpu) {
    EXPECT_EQ(open(key), nullptr);
    return reason;
  }
  std::string clock() const { return tree.get(std::string(kTegraGpu) + "/max_freq"); }
};

TEST_F(HelperClient, SetsAndPutsBackWhatTheDaemonLetsIt) {
  serve();
  auto control = open();
  ASSERT_NE(control, nullptr) << reason;
  EXPECT_EQ(control->id(), "tegra");
  EXPECT_EQ(control->device_key(), kTegraGpu);
  EXPECT_EQ(control->reopen_id(), "tegra");
  EXPECT_TRUE(control->guarded_elsewhere());
  EXPECT_TRUE(control->permitted());
  EXPECT_FALSE(control->may_hide_a_lock());
  EXPECT_EQ(control->clock_tolerance(), open_control("tegra", environment)->clock_tolerance());
  const auto before = asked.load();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(control->range(kCore).high, 1020) << "narrowed to the policy";
    EXPECT_EQ(control->core_clocks_at(0).size(), 7u);
  }
  EXPECT_EQ(asked, before + 2) << "each is asked once";
  EXPECT_EQ(control->set(kCore, 1020).status, ControlStatus::no_permission) << "without a lease";
  ASSERT_TRUE(control->acquire("tune", false).ok());
  EXPECT_TRUE(control->set(kCore, 1020).ok());
  EXPECT_EQ(clock(), "1020000000");
  EXPECT_TRUE(control->check(kCore, 1020).ok());
  tree.put(std::string(kTegraGpu) + "/max_freq", "1300500000");
  EXPECT_FALSE(control->check(kCore, 1020).ok()) << "somebody else";
  EXPECT_TRUE(control->release().ok());
  EXPECT_EQ(clock(), "1300500000");
  EXPECT_FALSE(control->release().ok()) << "there is no lease any more";
  EXPECT_EQ(control->lost(), "");
  control.reset();
  listener.reset();
}

TEST_F(HelperClient, ASessionLeavesLockAndJournalToTheDaemon) {
  serve();
  auto session = ControlSession::open(open());
  ASSERT_TRUE(session->set(kCore, 1020).ok());
  EXPECT_EQ(session->guardian_pid(), 0);
  EXPECT_EQ(session->current().at(kCore), 1020);
  EXPECT_TRUE(session->finish().complete);
  EXPECT_EQ(clock(), "1300500000");
}

TEST_F(HelperClient, ALeaseLastsAsThePolicySaysAndIsRenewedInTime) {
  serve("devices=[\"*\"]\ncore_clock_mhz=[400, 1100]", "lease_seconds=7\n");
  auto control = open();
  ASSERT_TRUE(control->acquire("tune", false).ok());
  EXPECT_NEAR(service->next_expiry(1000), 7, 1e-9);
  EXPECT_TRUE(control->release().ok());
  control.reset();
  listener.reset();
  std::filesystem::remove(environment.helper_socket);
  serve("devices=[\"*\"]\ncore_clock_mhz=[400, 1100]", "lease_seconds=1\n");
  control = open();
  ASSERT_TRUE(control->acquire("tune", false).ok());
  const auto before = asked.load();
  for (int look = 0; look < 60000 && asked == before; ++look) ::usleep(1000);
  EXPECT_GT(asked, before) << "without being told to";
  EXPECT_TRUE(control->release().ok());
}

TEST_F(HelperClient, ASessionWhoseDaemonHasGoneSaysSoAtItsEnd) {
  serve();
  take_failed_restores();
  auto session = ControlSession::open(open());
  ASSERT_TRUE(session->set(kCore, 1020).ok());
  gone = true;
  const auto report = session->finish();
  EXPECT_FALSE(report.complete);
  EXPECT_THAT(report.summary, HasSubstr("tegra: ergotuned has gone"));
  EXPECT_EQ(take_failed_restores().size(), 1u);
}

TEST_F(HelperClient, ADaemonOfRootsServesOthers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  serve();
  std::filesystem::permissions(tree.root(), std::filesystem::perms(0755));
  std::filesystem::permissions(state.root(), std::filesystem::perms(0755));
  const EffectiveUser nobody;
  EXPECT_NE(open(), nullptr) << reason;
}

TEST_F(HelperClient, ASecondLeaseIsRefused) {
  serve();
  auto first = open();
  ASSERT_TRUE(first->acquire("tune", false).ok());
  EXPECT_FALSE(first->acquire("tune", false).ok());
  EXPECT_FALSE(first->acquire("tune", true).ok());
  EXPECT_TRUE(first->release().ok());
}

TEST_F(HelperClient, WhatThePolicyDoesNotAllowIsSaid) {
  serve("devices=[\"nvml:0\"]");
  EXPECT_THAT(refusal(), HasSubstr("policy does not let you set clocks of tegra"));
}

TEST_F(HelperClient, AnotherDeviceIsNotTaken) {
  serve();
  EXPECT_THAT(refusal("/sys/other"), HasSubstr("does not know this device"));
}

TEST_F(HelperClient, WhereNobodyListensItSaysSo) {
  EXPECT_THAT(refusal(), HasSubstr("ergotuned is not there"));
  const std::string socket = std::exchange(environment.helper_socket, "");
  EXPECT_THAT(refusal(), HasSubstr("ergotuned is not there"));
  environment.helper_socket = "/tmp/" + std::string(200, 'x');
  EXPECT_THAT(refusal(), HasSubstr("ergotuned is not there"));
  // as long as an address can be, and too long by one
  for (const auto& [length, words] : {std::pair{107u, "no socket"}, {108u, "is not there"}}) {
    environment.helper_socket = state.root() / std::string(length - state.root().string().size() - 1, 'x');
    std::ofstream(environment.helper_socket) << "text";
    EXPECT_THAT(refusal(), HasSubstr(words)) << length;
  }
  environment.helper_socket = socket;
  std::ofstream(socket) << "text";
  EXPECT_THAT(refusal(), HasSubstr("no socket"));
  std::filesystem::remove(socket);
  listen("x", [](std::string_view) { return std::string(); });
  listener.reset();
  EXPECT_THAT(refusal(), HasSubstr("does not answer"));
}

TEST_F(HelperClient, WhoeverIsNotTheDaemonIsNotUsed) {
  listen("no hello", [](std::string_view) { return std::string(); });
  EXPECT_THAT(refusal(), HasSubstr("not this version of ergotuned"));
  listener.reset();
  std::filesystem::remove(environment.helper_socket);
  listen(encode(77, 0, Answer(DoneAnswer{ControlStatus::failed, "too many clients", 0})), [](std::string_view) { return std::string(); });
  EXPECT_THAT(refusal(), HasSubstr("too many clients"));
  listener.reset();
  std::filesystem::remove(environment.helper_socket);
  listen(encode(77, 0, Answer(ClocksAnswer{})), [](std::string_view) { return std::string(); });
  EXPECT_THAT(refusal(), HasSubstr("not this version of ergotuned"));
}

TEST_F(HelperClient, ASocketOfAnotherUserIsNotUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  ASSERT_EQ(::chmod(state.root().c_str(), 0777), 0);
  {
    const EffectiveUser nobody;
    listen(encode(77, 0, Answer(Hello{})), [](std::string_view) { return std::string(); });
  }
  EXPECT_THAT(refusal(), HasSubstr("is not root"));
}

// A daemon that says something else from its second answer on.
TEST_F(HelperClient, AnswersToOtherQuestionsAreNone) {
  int turn = 0;
  Answer wrong;
  std::uint64_t nonce = 77, ahead = 0;
  listen(encode(77, 0, Answer(Hello{})), [&](std::string_view bytes) {
    Header header;
    decode_request(bytes, header);
    const Answer devices = DevicesAnswer{{{"tegra", kTegraGpu, true}}};
    return ++turn == 1 ? encode(77, header.sequence, devices) : encode(nonce, header.sequence + ahead, wrong);
  });
  auto control = open();
  ASSERT_NE(control, nullptr) << reason;
  wrong = ClocksAnswer{{100}};
  EXPECT_THAT(control->set(kCore, 1020).message, HasSubstr("another question"));
  EXPECT_FALSE(control->range(kCore).supported);
  wrong = DoneAnswer{ControlStatus::timeout, "later", 0};
  EXPECT_TRUE(control->core_clocks_at(800).empty());
  EXPECT_EQ(control->set(kCore, 1020).status, ControlStatus::timeout);
  EXPECT_EQ(control->lost(), "");
  wrong = DoneAnswer{};
  ahead = 1;
  EXPECT_FALSE(control->set(kCore, 1020).ok()) << "an answer of another time";
  EXPECT_THAT(control->lost(), HasSubstr("has gone"));
  control.reset();
  turn = 0;
  ahead = 0;
  control = open();
  ASSERT_NE(control, nullptr) << reason;
  nonce = 78;
  EXPECT_FALSE(control->set(kCore, 1020).ok()) << "an answer of another connection";
  EXPECT_THAT(control->lost(), HasSubstr("has gone"));
}

TEST_F(HelperClient, ADaemonThatGoesIsSaid) {
  int turn = 0;
  listen(encode(77, 0, Answer(Hello{})), [&](std::string_view bytes) {
    Header header;
    decode_request(bytes, header);
    return ++turn == 1 ? encode(77, header.sequence, Answer(DevicesAnswer{{{"tegra", kTegraGpu, true}}})) : std::string();
  });
  auto control = open();
  ASSERT_NE(control, nullptr) << reason;
  EXPECT_EQ(control->lost(), "");
  EXPECT_THAT(control->set(kCore, 1020).message, HasSubstr("ergotuned has gone"));
  EXPECT_THAT(control->lost(), HasSubstr("ergotuned has gone"));
}

// The control that a user gets: through the daemon where it serves, else by the user's own rights.
TEST_F(HelperClient, TheUsersControlIsTheDaemonsOrTheUsersOwn) {
  const std::pair<const char*, std::string> variables[] = {{"ERGOTUNE_SYSFS_ROOT", tree.root()},
                                                           {"ERGOTUNE_NVML", environment.nvml_library},
                                                           {"ERGOTUNE_STATE_DIR", environment.state_folder},
                                                           {"ERGOTUNE_HELPER_SOCKET", environment.helper_socket}};
  for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
  std::string why_not;
  EXPECT_FALSE(usable_control("tegra", &why_not)->guarded_elsewhere());
  std::filesystem::permissions(tree.root(), std::filesystem::perms(0755));
  for (const char* file : {"/min_freq", "/max_freq"}) ::chmod(tree.real(std::string(kTegraGpu) + file).c_str(), 0444);
  {
    const EffectiveUser nobody;
    EXPECT_EQ(usable_control("tegra", &why_not), nullptr);
    EXPECT_THAT(why_not, HasSubstr("setting them needs root"));
    EXPECT_EQ(control_for_device("GPU-1", "", false, nullptr), nullptr);
    EXPECT_EQ(usable_control("tegra"), nullptr);
  }
  serve();
  EXPECT_TRUE(usable_control("tegra", &why_not)->guarded_elsewhere());
  EXPECT_EQ(control_for_device("GPU-1", "", true, &why_not), nullptr);
  EXPECT_THAT(why_not, HasSubstr("no clock or power control was found"));
  control_trees::add_cpufreq(tree);
  control_trees::add_amdgpu(tree);
  EXPECT_EQ(find_control("", "", true, environment), "cpufreq");
  EXPECT_EQ(find_control("", "0000:c1:00.0", false, environment), "amdgpu:card0");
  EXPECT_EQ(find_control("GPU-1", "0000:c2:00.0", false, environment), "tegra");
  for (const auto& [name, value] : variables) ::unsetenv(name);
}

}  // namespace
}  // namespace ergotune::helper
