// Journals that are none, processes that are gone, folders that are read; and a session that is killed with its clocks changed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/hash.hpp"
#include "base/process.hpp"
#include "ergotune/base/error.hpp"
#include "fakes/control_trees/control_trees.hpp"
#include "power/journal.hpp"

namespace ergotune {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

constexpr const char* kEarlier = R"({
 "format": "ergotune-journal",
 "version": 1,
 "device": "nvml:0",
 "reopen_id": "nvml:GPU-1",
 "device_key": "GPU-1",
 "boot_id": "7d0b4a52",
 "pid": 4242,
 "start_ticks": 99,
 "command": "tune \"gr\u00f6\u00dfe\"",
 "since": 1750000000.0,
 "steps": [
  {
   "kind": "nvml-power-limit",
   "target": "GPU-1",
   "value": "250000",
   "quantity": "power_limit_w"
  }
 ],
 "checksum": "d76529aa5456df03b50055ecd8cf5ea1"
}
)";

Journal small_journal() {
  Journal journal;
  journal.device = "tegra";
  journal.reopen_id = "tegra";
  journal.device_key = "key";
  journal.boot_id = boot_id();
  journal.pid = 4242;
  journal.start_ticks = 99;
  journal.command = "tune";
  journal.since = 1.75e9;
  journal.steps = {{"sysfs", "/f", "1", ControlQuantity::power_limit_w}};
  return journal;
}

/// What is said of a journal that was changed by somebody who knows how its checksum is made; empty where it is read.
std::string complaint(const std::function<void(Json&)>& change) {
  Json document = Json::parse(format_journal(small_journal()));
  document.erase("checksum");
  change(document);
  document["checksum"] = content_hash(document.dump(-1, ' ', true, Json::error_handler_t::replace));
  try {
    parse_journal(document.dump());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(JournalDocuments, AreReadWholeOrRefused) {
  EXPECT_EQ(complaint([](Json&) {}), "");
  for (const char* name : {"device", "reopen_id", "device_key", "boot_id", "pid", "start_ticks", "command", "since", "version"}) {
    EXPECT_EQ(complaint([&](Json& j) { j.erase(name); }), std::string("\"") + name + "\" is missing");
    EXPECT_EQ(complaint([&](Json& j) { j[name] = Json::array(); }), std::string("\"") + name + "\" has the wrong type");
  }
  EXPECT_EQ(complaint([](Json& j) { j["since"] = 5; }), "") << "a number";
  EXPECT_THAT(complaint([](Json& j) { j["pid"] = 1.5; }), HasSubstr("wrong type"));
  EXPECT_EQ(complaint([](Json& j) { j["version"] = 2; }), "its version is 2; this ergotune reads version 1");
  EXPECT_EQ(complaint([](Json& j) { j["version"] = 0; }), "its version is 0; this ergotune reads version 1");
  EXPECT_EQ(complaint([](Json& j) { j["format"] = "another"; }), "it is not a journal of ergotune");
  EXPECT_EQ(complaint([](Json& j) { j.erase("format"); }), "it is not a journal of ergotune");
  EXPECT_EQ(complaint([](Json& j) { j.erase("steps"); }), "\"steps\" is missing");
  EXPECT_EQ(complaint([](Json& j) { j["steps"] = 3; }), "\"steps\" is missing");
  EXPECT_EQ(complaint([](Json& j) { j["steps"][0] = 3; }), "a step is not an object");
  EXPECT_EQ(complaint([](Json& j) { j["steps"][0]["quantity"] = "fans"; }), "a step has an unknown quantity");
  EXPECT_EQ(complaint([](Json& j) { j["steps"][0].erase("kind"); }), "\"kind\" is missing");
  const auto many = [](std::size_t n) {
    return complaint([n](Json& j) { j["steps"] = std::vector<Json>(n, j["steps"][0]); });
  };
  EXPECT_EQ(many(4096), "");
  EXPECT_EQ(many(4097), "it has too many steps");
  EXPECT_THROW(parse_journal("[]"), Error);
  EXPECT_THROW(parse_journal(""), Error);
}

// As ergotune 1 has written it: a journal that waits on a disk is read by whatever comes later.
TEST(JournalDocuments, OfEarlierDaysAreReadAsTheyWere) {
  const auto journal = parse_journal(kEarlier);
  EXPECT_EQ(journal.device_key, "GPU-1");
  EXPECT_EQ(journal.command, "tune \"gr\xc3\xb6\xc3\x9f" "e\"");
  ASSERT_EQ(journal.steps.size(), 1u);
  EXPECT_EQ(journal.steps[0].quantity, ControlQuantity::power_limit_w);
  const auto again = format_journal(journal);
  EXPECT_EQ(again, kEarlier);
  EXPECT_TRUE(std::all_of(again.begin(), again.end(), [](unsigned char c) { return c < 0x80; })) << "whatever a command holds";
}

TEST(Processes, HaveTheTimeAtWhichTheyBegan) {
  const auto ticks_now = [] {
    timespec now{};
    ::clock_gettime(CLOCK_BOOTTIME, &now);
    return (static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec)) * static_cast<double>(::sysconf(_SC_CLK_TCK));
  };
  const double before = ticks_now();
  const auto child = ChildProcess::start({"/bin/sleep", "1000"});
  EXPECT_GE(static_cast<double>(process_start_ticks(child.pid())), before - 2);
  EXPECT_LE(static_cast<double>(process_start_ticks(child.pid())), ticks_now() + 2);
}

TEST(Processes, ThatHaveEndedAreNotAliveThoughNobodyHasAskedForThem) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  const auto ticks = process_start_ticks(child);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_FALSE(process_alive(child, ticks));
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(process_alive(child, ticks));
  EXPECT_FALSE(process_alive(child, 0));
  EXPECT_EQ(process_start_ticks(child), 0u);
  EXPECT_FALSE(process_alive(-1, 0));
  EXPECT_TRUE(process_alive(1, process_start_ticks(1)));
}

struct JournalFolder : ::testing::Test {
  control_trees::Tree tree;
  std::filesystem::path path = tree.root() / "state";
  StateFolder folder = StateFolder::open(path);
};

TEST_F(JournalFolder, HasJournalsInTheirOrderAndNothingElse) {
  for (const char* name : {"b.journal", "a.journal", "c.lock", "d.journal.new", "e.journal.damaged"}) std::ofstream(path / name) << "x";
  EXPECT_THAT(folder.journal_files(), ElementsAre(path / "a.journal", path / "b.journal"));
  EXPECT_NE(folder.journal_file("x"), folder.journal_file("y"));
  EXPECT_FALSE(folder.read(path / "none.journal"));
  EXPECT_NO_THROW(folder.clear(path / "none.journal"));
  EXPECT_THROW(folder.set_aside(path / "none.journal"), Error);
  folder.set_aside(path / "a.journal");
  EXPECT_TRUE(std::filesystem::exists(path / "a.journal.damaged"));
}

TEST_F(JournalFolder, ReadsNoMoreThanAJournal) {
  const auto file = path / "a.journal";
  std::ofstream(file) << std::string((4u << 20) + 1, ' ');
  ::chmod(file.c_str(), 0600);
  try {
    folder.read(file);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("too large"));
  }
  std::ofstream(file) << std::string(4u << 20, ' ');
  try {
    folder.read(file);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("not a JSON object"));
  }
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  EXPECT_THROW(folder.read(file), Error);
  EXPECT_THROW(folder.clear(file), Error);
}

TEST_F(JournalFolder, LongCommandsAndJournalsComeBackWhole) {
  Journal journal = small_journal();
  journal.command = std::string(20000, 'c');
  folder.write(journal);
  EXPECT_EQ(folder.read(folder.journal_file("key"))->command, journal.command);
  const auto file = folder.journal_file("key");
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0600));
  journal.command += std::string(8193 - std::filesystem::file_size(file) % 8192, 'c');
  folder.write(journal);
  ASSERT_EQ(std::filesystem::file_size(file) % 8192, 1u);
  EXPECT_EQ(folder.read(file)->command, journal.command) << "to its last letter";
}

TEST_F(JournalFolder, AFileIsNoFolder) {
  std::ofstream(tree.root() / "file") << "x";
  EXPECT_THROW(StateFolder::open(tree.root() / "file"), UserError);
  ::chmod(path.c_str(), 0777);
  try {
    StateFolder::open(path);
    ADD_FAILURE();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("(mode 777)"));
  }
  if (::geteuid() == 0) {
    ::chmod(path.c_str(), 0700);
    ASSERT_EQ(::chown(path.c_str(), 1000, 1000), 0);
    EXPECT_THROW(StateFolder::open(path), UserError) << "somebody else's";
  }
}

TEST_F(JournalFolder, AJournalOfSomebodyElsesIsNotRead) {
  folder.write(small_journal());
  const auto file = folder.journal_file("key");
  ::chmod(file.c_str(), 0620);
  EXPECT_THROW(folder.read(file), Error);
  ::chmod(file.c_str(), 0644);
  EXPECT_TRUE(folder.read(file)) << "others may look";
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a file away";
  ASSERT_EQ(::chown(file.c_str(), 1000, 1000), 0);
  EXPECT_THROW(folder.read(file), Error);
}

TEST_F(JournalFolder, ALockIsItsOwnersOnly) {
  const auto lock = DeviceLock::try_take(folder, "key");
  struct stat info {};
  ASSERT_EQ(::stat(folder.lock_file("key").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
}

TEST_F(JournalFolder, ALockMovesWithItsOwner) {
  auto lock = DeviceLock::try_take(folder, "key");
  ASSERT_TRUE(lock);
  DeviceLock other = std::move(*lock);
  lock.reset();
  DeviceHolder holder;
  holder.pid = 7;
  EXPECT_FALSE(DeviceLock::try_take(folder, "key", &holder));
  EXPECT_EQ(holder.pid, 0) << "it has not said its name";
  auto second = DeviceLock::try_take(folder, "other");
  other = std::move(*second);
  second.reset();
  EXPECT_TRUE(DeviceLock::try_take(folder, "key"));
}

TEST_F(JournalFolder, TellsWhatIsLeft) {
  ControlEnvironment environment;
  environment.state_folder = path;
  Journal journal = small_journal();
  folder.write(journal);
  auto status = list_journals(environment).at(0);
  EXPECT_FALSE(status.session.alive || status.from_earlier_boot || status.being_restored);
  EXPECT_EQ(status.session.pid, 4242);
  journal.boot_id = "before";
  folder.write(journal);
  const auto lock = DeviceLock::try_take(folder, "key");
  status = list_journals(environment).at(0);
  EXPECT_TRUE(status.from_earlier_boot && status.being_restored);
  journal.pid = ::getpid();
  journal.start_ticks = process_start_ticks(::getpid());
  folder.write(journal);
  status = list_journals(environment).at(0);
  EXPECT_TRUE(status.session.alive);
  EXPECT_FALSE(status.being_restored) << "its session has it";
  std::ofstream(folder.journal_file("key"), std::ios::app) << "x";
  EXPECT_THAT(list_journals(environment).at(0).damaged, HasSubstr("damaged"));
  environment.state_folder = tree.root() / "none";
  EXPECT_TRUE(list_journals(environment).empty());
  EXPECT_TRUE(replay_stale_journals(environment).empty());
}

}  // namespace
}  // namespace ergotune
