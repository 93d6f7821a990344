// A control through ergotuned, over a real socket: what the daemon does for it, and whoever else may listen there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <thread>
#include <utility>

#include "fakes/control_trees/control_trees.hpp"
#include "helper/helper_service.hpp"
#include "power/controls/control_backends.hpp"
#include "power/effective_user.hpp"
#include "power/guardian/guardian.hpp"

namespace ergotune::helper {
namespace {

using control_trees::kTegraGpu;
using ::testing::HasSubstr;

/// What listens at a socket, for one client after the other: `answer` gets what comes; an empty answer ends the
/// connection.
class Listener {
 public:
  using Answerer = std::function<std::string(std::string_view)>;
  Listener(const std::filesystem::path& path, std::string hello, Answerer answer)
      : hello_(std::move(hello)),
        answer_(std::move(answer)),
        socket_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
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
  std::atomic<std::size_t> requested = 0;
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
      ++requested;
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

TEST_F(HelperClient, WhoeverIsNotTheDaemonIsNotUsed) {
  listen("no hello", [](std::string_view) { return std::string(); });
  EXPECT_THAT(refusal(), HasSubstr("not this version of ergotuned"));
  listener.reset();
  std::filesystem::remove(environment.helper_socket);
  listen(encode(77, 0, Answer(DoneAnswer{ControlStatus::failed, "too many clients", 0})),
         [](std::string_view) { return std::string(); });
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

// The control that a user gets: through the daemon where it serves, else by the user's own rights.
TEST_F(HelperClient, TheUsersControlIsTheDaemonsOrTheUsersOwn) {
  const std::pair<const char*, std::string> variables[] = {{"ERGOTUNE_SYSFS_ROOT", tree.root()},
                                                           {"ERGOTUNE_NVML", environment.nvml_library},
                                                           {"ERGOTUNE_STATE_DIR", environment.state_folder},
                                                           {"ERGOTUNE_HELPER_SOCKET", environment.helper_socket}};
  for (const auto& [name, value] : variables) ::setenv(name, value.c_str(), 1);
  std::string why_not;
  EXPECT_FALSE(usable_control("tegra", &why_not)->has_remote_guardian());
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
  EXPECT_TRUE(usable_control("tegra", &why_not)->has_remote_guardian());
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
