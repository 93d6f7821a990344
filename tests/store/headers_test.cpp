// C headers with the best of each device, and stores whose names are odd.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/formats/export.hpp"
#include "store/sqlite/store.hpp"
#include "store/sqlite/stored_session.hpp"
#include "store/written_files.hpp"

namespace ergotune {
namespace {

using testing::HasSubstr;

BestResult best_of(const std::string& problem, const std::string& device, std::int64_t block) {
  BestResult best;
  best.problem = problem;
  best.device = device;
  best.objective = "energy";
  Parameter code, clock, flag;
  code.name = "block";
  clock.name = "clock";
  clock.kind = ParameterKind::core_clock_mhz;
  flag.name = "flag";
  best.parameters = {code, clock, flag};
  best.configuration = {block, 1410, true};
  best.measurement.quantities["time"].provenance = Provenance::measured;
  return best;
}

TEST(Headers, SayOfEachDeviceWhatIsBestThere) {
  BestResult second = best_of("2 adds*/", "gpu #2\n(new)", 128);
  second.measurement.quantities["energy"].provenance = Provenance::replayed;
  const std::string header = to_c_header({best_of("2 adds*/", "--GPU  one--", 64), second,
                                          best_of("2 adds*/", "gpu #2 new", 256), best_of("other", "gpu 3", 512)});
  EXPECT_THAT(header, HasSubstr("#ifndef PROBLEM_2_ADDS_TUNED_H\n#define PROBLEM_2_ADDS_TUNED_H\n"));
  const std::string blocks = header.substr(header.find("#if "));
  EXPECT_EQ(blocks,
            "#if defined(TARGET_GPU_ONE)\n"
            "/* --GPU  one--: best for energy (measured); run at clock = 1410 */\n#define block 64\n#define flag 1\n"
            "#elif defined(TARGET_GPU_2_NEW)\n"
            "/* gpu #2 (new): best for energy (replayed); run at clock = 1410 */\n#define block 128\n#define flag 1\n"
            "#else /* default */\n"
            "/* --GPU  one--: best for energy (measured); run at clock = 1410 */\n#define block 64\n#define flag 1\n"
            "#endif\n\n#endif /* PROBLEM_2_ADDS_TUNED_H */\n");
  EXPECT_THAT(to_c_header({second}), testing::Not(HasSubstr("TARGET_"))) << "there is nothing to choose";
  EXPECT_THAT(to_c_header({}), HasSubstr("#ifndef PROBLEM_TUNED_H\n"));
  EXPECT_THAT(to_c_header({best_of("+", "-", 1)}), HasSubstr("#ifndef UNKNOWN_TUNED_H\n"));
}

// A macro whose value is a compiler option would not compile where it is used.
TEST(Headers, SayForWhichConstantsAndHowToCompile) {
  BestResult best = best_of("add", "GPU", 64);
  best.constants = {{"COLS", 3}, {"ROWS", 512}};
  best.parameters.emplace_back().name = "LEVEL";
  best.configuration.emplace_back(std::string("-O3"));
  const std::string header = to_c_header({best});
  EXPECT_THAT(header, HasSubstr("/* GPU, COLS = 3, ROWS = 512: "));
  EXPECT_THAT(header, testing::Not(HasSubstr("#define LEVEL")));
  EXPECT_LT(header.find("-O3"), header.find("*/", header.find("GPU")));
}

TEST(StoresByName, MayHoldAnyLetter) {
  for (const char* name : {"a?b.db", "a#b.db", "a%41b.db", "a b.db", "\u00e4.db", "file:x.db"}) {
    const TemporaryFolder folder;
    const auto file = folder.path() / name;
    { Store::open(file).session(SessionKey{.problem = "p"}, {"x"}, "time", "{}", "{}"); }
    EXPECT_TRUE(is_store(file)) << name;
    EXPECT_EQ(Store::open(file, true).sessions().size(), 1u) << name;
  }
}

std::string complaint(const Store& store, std::int64_t session) {
  return complaint_about([&] { pick_session(store, session); });
}

TEST(SessionsOfAStore, TheOneThatHasRowsIsMeant) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "s.db";
  Store store = Store::open(file);
  EXPECT_EQ(complaint(store, 0), file.string() + ": this store has no sessions yet; \"ergotune tune\" makes one");
  const auto begin = [&](const char* problem) {
    return store.session(SessionKey{.problem = problem, .device = problem}, {"x"}, "time", "{}", "{}");
  };
  const auto full = begin("full"), older = begin("older");
  begin("empty");
  EXPECT_EQ(complaint(store, 9), file.string() + ": this store has no session 9; it has 1, 2, 3");
  store.add(older, {1}, {});
  store.add(full, {1}, {});
  EXPECT_EQ(pick_session(store).id, older) << "the later of two nobody has worked on since";
  store.begin_run(full, {});
  EXPECT_EQ(pick_session(store).id, full) << "the last that was worked on and has rows";
}

TEST(SessionsOfAStore, SayHowTheProblemStandsNow) {
  const TemporaryFolder folder;
  Store store = Store::open(folder.path() / "s.db");
  const auto session = [&](const SessionKey& identity, const char* environment, const char* document) {
    return store.session(identity, {"x"}, "time", environment, document);
  };
  const SessionKey identity{.problem = "p"};
  const auto other = session({.problem = "q", .device = "q"}, R"({"cpu":"old"})", R"({"n":1})");
  const auto first = session(identity, R"({"cpu":"old"})", R"({"n":1})");
  EXPECT_EQ(session(identity, R"({"cpu":"new"})", R"({"n":2})"), first);
  EXPECT_EQ(store.document(first) + store.environment(first), R"({"n":2}{"cpu":"new"})");
  EXPECT_EQ(store.document(other) + store.environment(other), R"({"n":1}{"cpu":"old"})");
}

}  // namespace
}  // namespace ergotune
