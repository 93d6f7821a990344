#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>

#include "ergotune/error.hpp"
#include "store/formats/recording.hpp"
#include "store/sqlite/database.hpp"
#include "store/sqlite/store.hpp"
#include "store/written_files.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;

SessionKey identity(const std::string& document = "{}") {
  return {"gemm", document, "opencl:0:0", "driver 1", "time", Provenance::measured};
}

std::int64_t begin_session(Store& store, const std::string& document = "{}") {
  return store.session(identity(document), {"x", "y"}, "time", R"({"cpu": "none"})", "{}");
}

Measurement full_measurement() {
  Measurement m;
  m.status = Status::not_converged;
  m.message = "line 3: error: \"quotes\"\nand\tcontrol \x01 characters";
  m.quantities["time"] = {1.0 / 3, 1e-6, 32, "device events", "", Provenance::measured};
  m.quantities["energy"] = {0.1 + 0.2,           std::numeric_limits<double>::infinity(), 5, "regression", "nvml:0",
                            Provenance::modelled};
  m.quantities["error"] = {std::numeric_limits<double>::quiet_NaN(), 0, 1, "", "", Provenance::simulated};
  m.metrics["gflops"] = 1234.5678901234567;
  m.metric_errors["gflops"] = 12.5;
  m.warnings = {"power cap", "asked 1410 MHz, ran 1275 MHz"};
  m.times = {0.1, 1e-300, 5e-324};
  m.compile_seconds = 1.5;
  m.verify_seconds = 0.25;
  m.measure_seconds = 2;
  m.tuner_seconds = 1e-4;
  m.finished_at = 1.7e9 + 0.123;
  return m;
}

TEST(Store, ARowComesBackAsItWas) {
  const TemporaryFolder folder;
  const Configuration configuration{16, 0.1, true, "a \"b\""};
  {
    Store store = Store::open(folder.path() / "s.ergotune");
    store.add(store.session(identity(), {"a", "b", "c", "d"}, "time", "{}", "{}"), configuration, full_measurement());
  }
  const Store store = Store::open(folder.path() / "s.ergotune", true);
  const auto rows = store.rows(1);
  ASSERT_EQ(rows.size(), 1u);
  ASSERT_EQ(rows[0].configuration.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(rows[0].configuration[i].data(), configuration[i].data());
  const Measurement expected = full_measurement();
  const Measurement& m = rows[0].measurement;
  EXPECT_EQ(m.status, expected.status);
  EXPECT_EQ(m.message, expected.message);
  EXPECT_EQ(m.quantities.at("time").value, expected.quantities.at("time").value);
  EXPECT_EQ(m.quantities.at("time").n, 32);
  EXPECT_EQ(m.quantities.at("energy").value, expected.quantities.at("energy").value);
  EXPECT_TRUE(std::isinf(m.quantities.at("energy").standard_error));
  EXPECT_EQ(m.quantities.at("energy").sensor, "nvml:0");
  EXPECT_EQ(m.quantities.at("energy").provenance, Provenance::modelled);
  EXPECT_TRUE(std::isnan(m.quantities.at("error").value));
  EXPECT_EQ(m.metrics, expected.metrics);
  EXPECT_EQ(m.metric_errors, expected.metric_errors);
  EXPECT_EQ(m.warnings, expected.warnings);
  EXPECT_EQ(m.times, expected.times);
  EXPECT_EQ(m.finished_at, expected.finished_at);
  EXPECT_EQ(m.tuner_seconds, expected.tuner_seconds);
}

TEST(Store, AnyMessageComesBack) {
  const TemporaryFolder folder;
  Store store = Store::open(folder.path() / "s.ergotune");
  const auto session = begin_session(store);
  EXPECT_TRUE(rc::check("a message of any text and any finite numbers",
                        [&](const std::string& message, double value, std::int64_t x) {
                          Measurement m;
                          m.message = message;
                          m.quantities["time"].value = value;
                          store.add(session, {Value(x), Value(value)}, m);
                          const auto row = store.rows(session).back();
                          // SQLite keeps every byte but a text ends at a zero byte for other readers, so the
                          // whole length is compared
                          RC_ASSERT(row.measurement.message == message);
                          RC_ASSERT(row.measurement.quantities.at("time").value == value);
                          RC_ASSERT(row.configuration[0].data() == Value(x).data());
                          RC_ASSERT(row.configuration[1].data() == Value(value).data());
                        }));
}

TEST(Store, SessionsAreFoundByWhatDeterminesTheirResults) {
  const TemporaryFolder folder;
  Store store = Store::open(folder.path() / "s.ergotune");
  const auto first = begin_session(store);
  EXPECT_EQ(begin_session(store), first);
  EXPECT_NE(begin_session(store, "{changed kernel}"), first);
  const auto check = [&](auto change) {
    SessionKey other = identity();
    change(other);
    EXPECT_NE(other.hash(), identity().hash());
  };
  check([](SessionKey& i) { i.device = "opencl:0:1"; });
  check([](SessionKey& i) { i.device_identity = "driver 2"; });
  check([](SessionKey& i) { i.conditions = "time, energy"; });
  check([](SessionKey& i) { i.provenance = Provenance::simulated; });
  check([](SessionKey& i) {
    i.device = "opencl:0:0d";
    i.device_identity = "river 1";
  });
  ASSERT_EQ(store.sessions().size(), 2u);
  const SessionInfo info = store.sessions()[0];
  EXPECT_EQ(info.problem, "gemm");
  EXPECT_THAT(info.parameter_names, ElementsAre("x", "y"));
  EXPECT_EQ(info.rows, 0u);
  EXPECT_EQ(store.environment(first), R"({"cpu": "none"})");
  EXPECT_EQ(store.document(first), "{}");
  EXPECT_FALSE(store.session_info(99).has_value());
}

TEST(Store, WhoDiedTwiceIsACulprit) {
  const TemporaryFolder folder;
  Store store = Store::open(folder.path() / "s.ergotune");
  const std::int64_t session = begin_session(store);
  store.record_start(session, {1, 2});
  store.record_start(session, {3, 4});
  EXPECT_TRUE(store.note_deaths(session).empty());
  EXPECT_TRUE(store.unfinished(session).empty());
  EXPECT_TRUE(store.note_deaths(session).empty()) << "neither ran this time";
  store.record_start(session, {3, 4});
  EXPECT_EQ(store.note_deaths(session), (std::vector<Configuration>{{3, 4}}));
  EXPECT_EQ(store.note_deaths(session), (std::vector<Configuration>{{3, 4}})) << "until its row is there";
  store.add(session, {3, 4}, {});
  store.record_start(session, {1, 2});
  store.add(session, {1, 2}, {});
  EXPECT_TRUE(store.note_deaths(session).empty());
}

TEST(Store, OfSeveralRowsOneCounts) {
  const TemporaryFolder folder;
  Store store = Store::open(folder.path() / "s.db");
  const auto session = store.session(SessionKey{.problem = "p"}, {"x"}, "time", "{}", "{}");
  const auto add = [&](int x, Status status, const std::string& message) {
    Measurement m;
    m.status = status;
    m.message = message;
    store.add(session, {x}, m);
  };
  add(1, Status::timeout, "slow");
  add(2, Status::ok, "first");
  add(3, Status::not_converged, "wide");
  add(1, Status::compile_error, "gone");
  add(2, Status::ok, "second");
  add(3, Status::runtime_error, "crash");
  add(4, Status::runtime_error, "crash");
  add(3, Status::ok, "narrow");
  add(4, Status::not_converged, "wide");
  const auto counted = [&] {
    std::vector<std::string> messages;
    for (const StoredRow& row : store.results(session)) messages.push_back(row.measurement.message);
    return messages;
  };
  EXPECT_EQ(counted(), (std::vector<std::string>{"gone", "second", "narrow", "wide"}));
  EXPECT_EQ(store.rows(session).size(), 9u);
  StoredRow confirmed;
  confirmed.configuration = {2};
  confirmed.measurement.message = "mean";
  confirmed.kind = RowKind::confirmed;
  store.add(session, confirmed);
  EXPECT_EQ(counted()[1], "mean");
  add(2, Status::not_converged, "retried");
  EXPECT_EQ(counted()[1], "retried") << "as the session that retried it has it";
}

TEST(Store, ReadingLeavesNothingBehind) {
  const TemporaryFolder folder;
  {
    Store store = Store::open(folder.path() / "s.ergotune");
    store.add(begin_session(store), {1, 2}, {});
  }
  { EXPECT_EQ(Store::open(folder.path() / "s.ergotune", true).rows(1).size(), 1u); }
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 1u) << "no log of SQLite's is left beside the store";
}

TEST(Store, ReadOnlyFoldersCanBeRead) {
  const TemporaryFolder folder;
  {
    Store store = Store::open(folder.path() / "s.ergotune");
    store.add(begin_session(store), {1, 2}, {});
  }
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0555));
  const uid_t user = ::geteuid(), nobody = 65534;
  if (user == 0) {
    ASSERT_EQ(::seteuid(nobody), 0);  // root may write everywhere
  }
  EXPECT_FALSE(std::ofstream(folder.path() / "more")) << "the folder can be written, so nothing is tested";
  EXPECT_EQ(Store::open(folder.path() / "s.ergotune", true).rows(1).size(), 1u);
  if (user == 0) {
    ASSERT_EQ(::seteuid(user), 0);
  }
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0755));
}

TEST(Store, ManyRowsAtOnceAreAllOrNone) {
  const TemporaryFolder folder;
  Store store = Store::open(folder.path() / "s.ergotune");
  const auto session = begin_session(store);
  store.add_all(session, {{0, {1, 2}, full_measurement()}, {0, {3, 4}, {}}});
  EXPECT_EQ(store.rows(session).size(), 2u);
  EXPECT_THROW(store.add_all(session + 1, {{0, {1, 2}, {}}}), Error) << "there is no such session";
  EXPECT_EQ(store.rows(session + 1).size(), 0u);
}

TEST(Store, TwoProcessesMayShareIt) {
  const TemporaryFolder folder;
  Store a = Store::open(folder.path() / "s.ergotune"), b = Store::open(folder.path() / "s.ergotune");
  const auto session = begin_session(a);
  EXPECT_EQ(begin_session(b), session);
  for (int i = 0; i < 20; ++i) (i % 2 ? a : b).add(session, {i, 0}, {});
  a.flush();
  EXPECT_EQ(a.rows(session).size(), 20u);
  EXPECT_EQ(Store::open(folder.path() / "s.ergotune", true).rows(session).size(), 20u);
}

TEST(Store, RepeatsOfAConfigurationCountOnce) {
  const TemporaryFolder folder;
  Store store = Store::open(folder.path() / "s.db");
  const std::int64_t session = begin_session(store, "{}");
  StoredRow row;
  row.measurement = full_measurement();
  for (const int which : {0, 1, 0}) {
    row.configuration = {which, 0};
    store.add(session, row);
  }
  store.flush();
  EXPECT_EQ(store.configurations(session), 2u);
}

TEST(Store, OnANetworkFilesystemProcessesShareAStoreWithoutAWriteAheadLog) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "s.db";
  constexpr std::size_t kProcesses = 3, kRows = 40;
  ::setenv("ERGOTUNE_STORE_JOURNAL", "truncate", 1);
  std::vector<pid_t> writers;
  for (std::size_t i = 0; i < kProcesses; ++i) {
    writers.push_back(::fork());
    if (writers.back() == 0) {
      try {
        Store store = Store::open(file);
        const std::int64_t session = begin_session(store, fmt::format("{{\"task\": {}}}", i));
        for (int row = 0; row < static_cast<int>(kRows); ++row) {
          StoredRow stored;
          stored.configuration = {row, 0};
          stored.measurement = full_measurement();
          store.add(session, stored);
        }
      } catch (const std::exception& error) {
        fmt::print(stderr, "{}\n", error.what());
        ::_exit(1);
      }
      ::_exit(std::filesystem::exists(file.string() + "-wal") ? 2 : 0);
    }
  }
  for (const pid_t writer : writers) {
    int status = 0;
    ::waitpid(writer, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const Store store = Store::open(file, true);
  ASSERT_EQ(store.sessions().size(), kProcesses);
  for (const SessionInfo& session : store.sessions()) EXPECT_EQ(session.rows, kRows);
  ::setenv("ERGOTUNE_STORE_JOURNAL", "memory", 1);
  EXPECT_THROW(Store::open(file), UserError);
  ::unsetenv("ERGOTUNE_STORE_JOURNAL");
}

using testing::IsEmpty;

/// A row of configuration `x`; its message is its name.
StoredRow row_of(int x, RowKind kind, const std::string& name, Status status = Status::ok, std::int64_t run = 0) {
  StoredRow row;
  row.configuration = {x};
  row.kind = kind;
  row.run = run;
  row.measurement.status = status;
  row.measurement.message = name;
  return row;
}

std::vector<std::string> names(const std::vector<StoredRow>& rows) {
  std::vector<std::string> result;
  for (const StoredRow& row : rows) result.push_back(row.measurement.message);
  return result;
}

RunInfo run_of(std::int64_t id, const std::string& objective, int rounds) {
  RunInfo run;
  run.id = id;
  run.objective.text = objective;
  run.confirmed = rounds;
  return run;
}

TEST(CountingRows, AConfirmationsMeanCountsAndSaysWhatItIsTheMeanOf) {
  const auto rows = current_rows(
      {row_of(1, RowKind::search, "one searched"), row_of(2, RowKind::search, "two searched"),
       row_of(1, RowKind::confirmation, "a round", Status::ok, 5),
       row_of(1, RowKind::confirmed, "first mean", Status::ok, 4),
       row_of(1, RowKind::confirmed, "last mean", Status::ok, 5), row_of(3, RowKind::reference, "a default")},
      {run_of(4, "time", 3), run_of(5, "energy", 7)});
  ASSERT_THAT(names(rows), ElementsAre("last mean", "two searched"));
  EXPECT_EQ(rows[0].rounds, 1) << "the rounds of this configuration, not the most of any in the run";
  ASSERT_TRUE(rows[0].confirmed_for);
  EXPECT_EQ(rows[0].confirmed_for->text, "energy");
  ASSERT_TRUE(rows[0].searched);
  EXPECT_EQ(rows[0].searched->message, "one searched");
  EXPECT_EQ(rows[1].rounds, 0);
  EXPECT_FALSE(rows[1].confirmed_for);
  EXPECT_FALSE(rows[1].searched);
}

TEST(CountingRows, AMeanOfARunThatIsNotKnownCountsAsWell) {
  const auto rows = current_rows({row_of(1, RowKind::confirmed, "mean", Status::ok, 9)}, {run_of(4, "time", 3)});
  ASSERT_THAT(names(rows), ElementsAre("mean"));
  EXPECT_EQ(rows[0].rounds, 0);
  EXPECT_FALSE(rows[0].confirmed_for);
  EXPECT_FALSE(rows[0].searched) << "nobody knows what the search read";
}

// B1: stores of earlier versions hold means of failed rounds.
TEST(CountingRows, AConfirmationThatFailedTakesNothingFromTheSearch) {
  for (const auto& [status, counts] :
       {std::pair{Status::launch_error, "searched"}, std::pair{Status::unsupported, "searched"},
        std::pair{Status::wrong_result, "mean"}, std::pair{Status::not_converged, "mean"}})
    EXPECT_THAT(names(current_rows(
                    {row_of(1, RowKind::search, "searched"), row_of(1, RowKind::confirmed, "mean", status)}, {})),
                ElementsAre(counts));
}

TEST(CountingRows, WhatIsSearchedAnewIsNoLongerConfirmed) {
  EXPECT_THAT(names(current_rows(
                  {row_of(1, RowKind::confirmed, "mean"), row_of(1, RowKind::search, "anew", Status::timeout)}, {})),
              ElementsAre("anew"));
  EXPECT_THAT(
      names(current_rows({row_of(1, RowKind::confirmation, "round"), row_of(2, RowKind::reference, "default")}, {})),
      IsEmpty());
}

}  // namespace
}  // namespace ergotune
