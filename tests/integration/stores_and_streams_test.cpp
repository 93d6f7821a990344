// Damaged, hostile and lost stores; bytes that a terminal or JSON cannot take; waits that a signal must end.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "integration/support/command.hpp"

namespace ergotune::test {
namespace {

using testing::HasSubstr;
using testing::Not;

void change(const std::filesystem::path& store, const std::string& sql) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(store.c_str(), &database), SQLITE_OK);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, &error), SQLITE_OK) << (error ? error : "");
  sqlite3_free(error);
  sqlite3_close(database);
}

/// A store with `rows` measured configurations of one parameter, turn.
void make_store(const TemporaryFolder& folder, int rows) {
  std::string text = "turn,status,time\n";
  for (int i = 1; i <= rows; ++i) text += std::to_string(i) + ",ok," + std::to_string(0.1 * i) + "\n";
  folder.write("r.csv", text);
  const auto result = ergotune(folder, {"import", "r.csv", "--store", "m.db"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
}

TEST(Stores, WithPathsThatAreTooLongSayHowLongTheyMayBe) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(2));
  std::filesystem::path deep;
  for (int i = 0; i < 6; ++i) deep /= std::string(100, 'd');
  std::filesystem::create_directories(folder.path() / deep);
  const auto result =
      ergotune(folder, {"tune", "p.toml", "--device", "host", "--store", (deep / "s.db").string(), "-q"});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("512"));
}

TEST(Stores, AreNoPipes) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(2));
  ASSERT_EQ(::mkfifo((folder.path() / "ff").c_str(), 0600), 0);
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"tune", "p.toml", "--device", "host", "--store", "ff", "-q"},
                                             {"watch", "ff"},
                                             {"show", "--sessions", "ff"}}) {
    const auto result = ergotune(folder, arguments, 60);
    EXPECT_FALSE(result.timed_out) << arguments[0];
    EXPECT_EQ(result.exit_code, 2) << arguments[0] << result.err;
    EXPECT_THAT(result.err, HasSubstr("ff: ")) << "the file is named";
  }
}

// What it waits for (here a pipe that is not read) may never come.
TEST(Signals, EndASessionWhateverItWaitsFor) {
  TemporaryFolder folder;
  folder.write("p.toml", simulated_problem(5) + "\n[execution]\ncore_clock_mhz = 3\n");
  ASSERT_EQ(::mkfifo((folder.path() / "figure.svg").c_str(), 0600), 0);
  ChildProcess session = start_ergotune(folder, {"tune", "p.toml", "--device", "sim:a100", "--plan", "race_to_idle",
                                                 "--figure", "figure.svg", "--no-store", "-q"});
  ASSERT_FALSE(session.wait(6)) << text_of(folder.path() / "err");
  ::kill(session.pid(), SIGTERM);
  const auto status = session.wait(60);
  ASSERT_TRUE(status && WIFEXITED(*status));
  EXPECT_EQ(WEXITSTATUS(*status), 128 + SIGTERM);
}

TEST(Stores, ADamagedRowIsLeftOutAndNamed) {
  for (const char* damage :
       {R"(quantities = '{"time": {"val')", "quantities = '{\"time\": {\"value\": 1}}'", "status = 'oj'",
        "configuration = '[1, 2]'", "configuration = '{}'", "metrics = 'x'", "warnings = '{'", "times = '[{}]'"}) {
    TemporaryFolder folder;
    make_store(folder, 5);
    change(folder.path() / "m.db", std::string("update measurements set ") + damage + " where id = 2");
    for (const std::string verb : {"show", "export", "report"}) {
      std::vector<std::string> arguments{verb, "m.db"};
      if (verb == "export") arguments.insert(arguments.end(), {"--format", "csv"});
      if (verb == "show") arguments.push_back("--json");
      const auto result = ergotune(folder, arguments);
      EXPECT_EQ(result.exit_code, 0) << verb << " " << damage << result.err;
      if (verb == "show") {
        const auto document = json_of(result);
        EXPECT_EQ(document.at("statuses").at("ok"), 4) << damage;
      }
      if (verb == "report") continue;
      EXPECT_THAT(result.err, HasSubstr("m.db: row 2 ")) << damage;
      EXPECT_THAT(result.err, HasSubstr("DELETE FROM measurements WHERE id = 2")) << damage;
    }
  }
}

TEST(Stores, ADamagedRowIsMeasuredAgain) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(3));
  const std::vector<std::string> tune{"tune",         "p.toml",  "--device", "host",  "-q",
                                      "--no-confirm", "--store", "m.db",     "--json"};
  ASSERT_EQ(ergotune(folder, tune).exit_code, 0);
  change(folder.path() / "m.db", "update measurements set quantities = '{\"time\": {\"val' where id = 2");
  const auto again = ergotune(folder, tune);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(json_of(again).at("evaluated"), 1);
  EXPECT_THAT(again.err, HasSubstr("row 2 ")) << "even with --quiet";
}

TEST(Stores, ADamagedSessionHidesNoOther) {
  TemporaryFolder folder;
  make_store(folder, 3);
  folder.write("s.csv", "bx,status,time\n1,ok,0.2\n");
  ASSERT_EQ(ergotune(folder, {"import", "s.csv", "--store", "m.db"}).exit_code, 0);
  change(folder.path() / "m.db", "update sessions set parameter_names = '[\"bx' where id = 2");
  const auto result = ergotune(folder, {"show", "m.db", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(json_of(result).at("statuses").at("ok"), 3);
  const auto named = ergotune(folder, {"show", "m.db", "--session", "2"});
  EXPECT_EQ(named.exit_code, 2);
  EXPECT_THAT(named.err, HasSubstr("m.db: "));
  change(folder.path() / "m.db", "update sessions set parameter_names = '[\"turn\"]', document = '{\"x' where id = 1");
  EXPECT_EQ(ergotune(folder, {"show", "m.db", "--session", "1"}).exit_code, 0) << "rows count without their problem";
}

TEST(Stores, AreLostOnlyWithAMessage) {
  TemporaryFolder folder;
  folder.write("p.toml", counting_problem(4000));
  const auto store = folder.path() / "m.db";
  ChildProcess session = start_ergotune(
      folder, {"tune", "p.toml", "--device", "host", "--no-confirm", "--no-early-stop", "--store", "m.db"});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(store) && stored_rows(store).size() > 2; }));
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(store.string() + end);
  ::kill(session.pid(), SIGINT);
  const auto status = session.wait(60);
  ASSERT_TRUE(status && WIFEXITED(*status));
  EXPECT_EQ(WEXITSTATUS(*status), 1);
  EXPECT_THAT(text_of(folder.path() / "out"), HasSubstr("Best configuration")) << "the answer is not lost with it";
  EXPECT_THAT(text_of(folder.path() / "out"), Not(HasSubstr("ergotune report m.db")));
  EXPECT_THAT(text_of(folder.path() / "err"), HasSubstr("m.db: "));
}

// `mv other.db m.db`: what SQLite has logged beside the name belongs to the file that was there before.
TEST(Stores, ReplacedByAnotherEndTheSessionAndStayAsTheyAre) {
  TemporaryFolder folder;
  make_store(folder, 3);
  const auto store = folder.path() / "m.db", other = folder.path() / "other.db", kept = folder.path() / "kept.db";
  std::filesystem::rename(store, other);
  folder.write("p.toml", counting_problem(4000));
  ChildProcess session = start_ergotune(
      folder, {"tune", "p.toml", "--device", "host", "--no-confirm", "--no-early-stop", "--store", "m.db"});
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(store) && stored_rows(store).size() > 2; }));
  std::filesystem::create_hard_link(store, kept);
  std::filesystem::rename(other, store);
  const auto status = session.wait(60);
  ASSERT_TRUE(status && WIFEXITED(*status)) << "it ends by itself";
  EXPECT_EQ(WEXITSTATUS(*status), 1);
  EXPECT_THAT(text_of(folder.path() / "err"), HasSubstr("m.db: "));
  EXPECT_EQ(integrity(store), "ok");
  EXPECT_EQ(stored_rows(store).size(), 3u);
  EXPECT_EQ(integrity(kept), "ok");
  EXPECT_GT(stored_rows(kept).size(), 2u);
}

TEST(Stores, WhatWouldExecuteIsRefused) {
  for (const char* sql :
       {"alter table measurements rename to real_measurements; create view measurements as with recursive r(i) as "
        "(select 1 union all select i+1 from r) select x.* from real_measurements x, r",
        "create trigger t after insert on runs begin delete from measurements; end",
        "alter table measurements add column more text as (hex(zeroblob(100)))"}) {
    TemporaryFolder folder;
    make_store(folder, 3);
    change(folder.path() / "m.db", sql);
    for (const auto& arguments : std::vector<std::vector<std::string>>{{"show", "m.db"},
                                                                       {"report", "m.db"},
                                                                       {"watch", "m.db"},
                                                                       {"export", "m.db", "--format", "csv"},
                                                                       {"import", "r.csv", "--store", "m.db"}}) {
      const auto result = ergotune(folder, arguments, 30);
      EXPECT_FALSE(result.timed_out) << arguments[0];
      EXPECT_EQ(result.exit_code, 2) << arguments[0] << ": " << sql << result.err;
    }
  }
}

TEST(Streams, ALimitOfFileSizesIsMetAsAFullDiskIs) {
  TemporaryFolder folder;
  make_store(folder, 3000);
  const auto limited = [&](const std::string& line) {
    ProcessOptions options;
    options.folder = folder.path().string();
    return run_process({"/bin/sh", "-c", "ulimit -f 40; exec " + ergotune_program() + " " + line}, options);
  };
  for (const char* line :
       {"export m.db --format csv -o out.csv", "report m.db -o out.html", "import r.csv --store new.db"}) {
    const auto result = limited(line);
    EXPECT_EQ(result.signal, 0) << line;
    EXPECT_THAT(result.exit_code, testing::AnyOf(1, 2)) << line << result.err;
    EXPECT_THAT(result.err, HasSubstr("ergotune: ")) << line;
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    EXPECT_THAT(entry.path().filename().string(), Not(testing::StartsWith("out."))) << "nothing is left behind";
}

TEST(Streams, BytesThatAreNoUtf8CostNoAnswer) {
  TemporaryFolder folder;
  folder.write("u.toml", R"toml(
name = "u"
[parameters]
V = [0, 1]
[kernel]
function = "f"
arguments = [{ name = "y", type = "float32", count = 10, access = "write" }]
source = { c = "k.c" }
)toml");
  folder.write("k.c",
               "#if V == 1\n#error caf\xe9\n#endif\nvoid f(float* y) { for (int i = 0; i < 10; ++i) y[i] = i; }\n");
  const auto tune =
      ergotune(folder, {"tune", "u.toml", "--device", "host", "--no-confirm", "--json", "--store", "u.db"});
  EXPECT_EQ(tune.exit_code, 0) << tune.err;
  EXPECT_FALSE(json_of(tune).at("best").is_null());
  EXPECT_EQ(
      json_of(ergotune(folder, {"measure", "u.toml", "--device", "host", "-c", R"({"V": 1})", "--json"})).at("status"),
      "compile_error");
  EXPECT_FALSE(json_of(ergotune(folder, {"show", "u.db", "--failures", "--json"})).empty());
  const auto program =
      ergotune(folder, {"program", "--json", "--no-store", "--max-seconds", "1", "--", "printf", "caf\xe9"});
  EXPECT_FALSE(json_of(program).empty());
  folder.write("l.csv", "b\xe9,status,time\n1,ok,0.2\n2,ok,0.1\n");
  EXPECT_EQ(ergotune(folder, {"import", "l.csv", "--store", "l.db"}).exit_code, 0);
  EXPECT_FALSE(json_of(ergotune(folder, {"show", "l.db", "--json"})).empty());
}

/// The command on a terminal: all that it was sent.
std::string on_terminal(const TemporaryFolder& folder, const std::vector<std::string>& arguments, bool colour = false) {
  int terminal = -1;
  const pid_t child = ::forkpty(&terminal, nullptr, nullptr, nullptr);
  if (child == 0) {
    ::setenv("TERM", "xterm", 1);
    colour ? ::unsetenv("NO_COLOR") : ::setenv("NO_COLOR", "1", 1);
    std::vector<std::string> words{ergotune_program()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    if (::chdir(folder.path().c_str()) == 0) ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  std::string text;
  char piece[4096];
  for (ssize_t got = 0; (got = ::read(terminal, piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<std::size_t>(got));
  ::close(terminal);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status)) << text;
  return text;
}

TEST(Streams, EscapeSequencesOfOthersReachNoTerminal) {
  TemporaryFolder folder;
  folder.write("r.csv", "bx,status,message,time\n1,ok,,0.2\n2,runtime_error,\x1b]0;owned\x07\x1b[2J,\n");
  ASSERT_EQ(ergotune(folder, {"import", "r.csv", "--store", "m.db", "--name", "a\nb\x1b[2J", "--device", "d\x1b[2J"})
                .exit_code,
            0);
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"show", "m.db", "--failures"}, {"show", "m.db", "--sessions"}, {"show", "nothere\x1b[2J.db"}}) {
    const std::string text = on_terminal(folder, arguments);
    EXPECT_THAT(text, Not(HasSubstr("\x1b"))) << arguments[1];
    EXPECT_THAT(text, Not(HasSubstr("\x07"))) << arguments[1];
  }
  const std::string heading = on_terminal(folder, {"show", "m.db"});
  EXPECT_THAT(heading.substr(0, heading.find('\n')), HasSubstr("a b")) << "a name is one line";
  EXPECT_THAT(ergotune(folder, {"export", "m.db", "--format", "csv"}).out, HasSubstr("\x1b]0;owned"))
      << "a file gets every byte";
}

TEST(Streams, AreColouredOnTerminalsUnlessNoColorIsSet) {
  TemporaryFolder folder;
  EXPECT_THAT(on_terminal(folder, {"show", "absent.db"}, true), HasSubstr("\x1b[31m"));
  EXPECT_THAT(on_terminal(folder, {"show", "absent.db"}), Not(HasSubstr("\x1b")));
  EXPECT_THAT(ergotune(folder, {"show", "absent.db"}).err, Not(HasSubstr("\x1b")));
}

TEST(Hints, NameTheWholeVerb) {
  TemporaryFolder folder;
  for (const char* verb : {"wisdom why", "wisdom check", "counters list", "clocks status"}) {
    const std::string text = verb;
    const std::size_t blank = text.find(' ');
    const auto result = ergotune(folder, {text.substr(0, blank), text.substr(blank + 1), "--no-such-option"});
    EXPECT_EQ(result.exit_code, 2) << verb;
    EXPECT_THAT(result.err, HasSubstr("ergotune " + text + " --help")) << verb;
    EXPECT_EQ(ergotune(folder, {"help", text.substr(0, blank), text.substr(blank + 1)}).out,
              ergotune(folder, {text.substr(0, blank), text.substr(blank + 1), "--help"}).out);
  }
}

TEST(Hints, AFolderStandsForTheProblemInIt) {
  TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "d1");
  folder.write("d1/problem.toml", counting_problem(2));
  std::filesystem::create_directory(folder.path() / "w");
  for (const std::string problem : {"d1", "d1/problem.toml"}) {
    const auto check = ergotune(folder, {"wisdom", "check", "w", "--problem", problem});
    EXPECT_EQ(check.exit_code, ergotune(folder, {"wisdom", "check", "w"}).exit_code) << check.err;
    EXPECT_EQ(ergotune(folder, {"space", problem}).exit_code, 0);
  }
}

}  // namespace
}  // namespace ergotune::test
