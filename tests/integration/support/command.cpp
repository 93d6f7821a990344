#include "integration/support/command.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "device/device.hpp"

namespace ergotune::test {
namespace {

std::map<std::string, std::string> environment_in(const TemporaryFolder& folder) {
  return {{"XDG_CACHE_HOME", (folder.path() / "cache").string()}, {"XDG_DATA_HOME", (folder.path() / "data").string()}};
}

/// First column of a query's rows, joined by what `each` makes of a row.
template <class F>
void query(const std::filesystem::path& file, const char* sql, F&& each) {
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open_v2(file.c_str(), &database, SQLITE_OPEN_READWRITE, nullptr), SQLITE_OK) << file;
  sqlite3_busy_timeout(database, 10'000);  // a session may be writing at this moment
  sqlite3_stmt* statement = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(database, sql, -1, &statement, nullptr), SQLITE_OK) << sqlite3_errmsg(database);
  while (statement && sqlite3_step(statement) == SQLITE_ROW) each(statement);
  sqlite3_finalize(statement);
  sqlite3_close(database);
}

std::string text_of(sqlite3_stmt* statement, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return text ? text : "";
}

}  // namespace

std::string ergotune_program() { return ERGOTUNE_BINARY_DIR "/ergotune"; }

ProcessResult ergotune(const TemporaryFolder& folder, std::vector<std::string> arguments, double timeout) {
  arguments.insert(arguments.begin(), ergotune_program());
  ProcessOptions options;
  options.folder = folder.path().string();
  options.environment = environment_in(folder);
  options.timeout = timeout;
  return run_process(arguments, options);
}

ChildProcess start_ergotune(const TemporaryFolder& folder, std::vector<std::string> arguments) {
  // A shell sends the output to files; exec makes the session itself the child that is killed.
  std::string line = "exec " + ergotune_program();
  for (const std::string& argument : arguments) line += " '" + argument + "'";
  ProcessOptions options;
  options.folder = folder.path().string();
  options.environment = environment_in(folder);
  return ChildProcess::start({"/bin/sh", "-c", line + " >out 2>err"}, options);
}

std::string text_of(const std::filesystem::path& file) { return read_file(file).value_or(std::string()); }

bool eventually(const std::function<bool()>& condition, double seconds) {
  for (const double end = host_seconds() + seconds; host_seconds() < end; ::usleep(5000))
    if (condition()) return true;
  return condition();
}

nlohmann::json json_of(const ProcessResult& result) {
  auto document = nlohmann::json::parse(result.out, nullptr, false);
  EXPECT_FALSE(document.is_discarded()) << "standard output: " << result.out << "\nstandard error: " << result.err;
  return document;
}

Fault::Fault(const TemporaryFolder& folder, const std::string& what) : log_(folder.path() / "faults.log") {
  ::setenv("LD_PRELOAD", ERGOTUNE_BINARY_DIR "/tests/fakes/faults/faults.so", 1);
  ::setenv("ERGOTUNE_FAULT", what.c_str(), 1);
  ::setenv("ERGOTUNE_FAULT_LOG", log_.c_str(), 1);
}
Fault::~Fault() {
  for (const char* name : {"LD_PRELOAD", "ERGOTUNE_FAULT", "ERGOTUNE_FAULT_LOG"}) ::unsetenv(name);
  std::error_code ignored;
  std::filesystem::remove(log_, ignored);
}
int Fault::fired() const {
  std::ifstream in(log_);
  return static_cast<int>(std::count(std::istreambuf_iterator<char>(in), {}, '\n'));
}

std::vector<std::string> chosen_faults(const std::vector<std::string>& all, std::size_t step) {
  if (std::getenv("ERGOTUNE_ALL_FAULTS")) return all;
  std::vector<std::string> some;
  for (std::size_t i = 0; i < all.size(); i += step) some.push_back(all[i]);
  return some;
}

std::map<std::string, std::vector<std::string>> stored_rows(const std::filesystem::path& store) {
  std::map<std::string, std::vector<std::string>> rows;
  bool begun = false;  // a session may have made the file and not yet its tables
  query(store, "SELECT 1 FROM sqlite_master WHERE name = 'measurements'", [&](sqlite3_stmt*) { begun = true; });
  if (!begun) return rows;
  // Rounds of a confirmation are rows of their own kind.
  query(store, "SELECT configuration, status FROM measurements WHERE kind = 'search' ORDER BY id",
        [&](sqlite3_stmt* statement) { rows[text_of(statement, 0)].push_back(text_of(statement, 1)); });
  return rows;
}

std::string integrity(const std::filesystem::path& store) {
  std::string answer;
  query(store, "PRAGMA integrity_check", [&](sqlite3_stmt* statement) { answer += text_of(statement, 0); });
  return answer;
}

bool some_process_mentions(const std::string& word) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string line = read_file(entry.path() / "cmdline").value_or("");  // it may end meanwhile
    if (line.find(word) != std::string::npos) return true;
  }
  return false;
}

std::string faults_problem() {
  return R"toml(
name = "faults"
[parameters]
mode = ["good", "compile_error", "segfault", "endless", "wrong", "memory", "aborted", "ended", "prints", "better"]
[kernel]
function = "work"
arguments = [
  { name = "n", type = "int32", value = 1000 },
  { name = "a", type = "float32", count = 1000 },
  { name = "b", type = "float32", count = 1000, access = "write" },
]
[kernel.source.c]
text = '''
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { good, compile_error, segfault, endless, wrong, memory, aborted, ended, prints, better };
static volatile int sink;
void work(int n, const float* a, float* b) {
  for (int i = 0; i < n; ++i) b[i] = 2 * a[i];
  if (mode != better) for (int i = 0; i < 20000; ++i) sink = i;
#ifdef BROKEN
  this does not compile
#endif
  if (mode == segfault) *(volatile int*)8 = 1;
  if (mode == endless) for (;;) sink = 1;
  if (mode == wrong) b[17] += 1;
  if (mode == memory) for (;;) { char* p = malloc(1 << 28); if (!p) { fputs("malloc says there is no memory\n", stderr); abort(); } sink += p[1]; }
  if (mode == aborted) { fputs("the kernel gave up\n", stderr); abort(); }
  if (mode == ended) exit(3);
  if (mode == prints) printf("{ \"this is\": not JSON\n");
}
'''
[kernel.options]
c = ["{{'-DBROKEN' if mode == 'compile_error' else ''}}"]
)toml";
}

std::string small_problem() {
  return R"toml(
name = "small"
[parameters]
block_size_x = [8, 16, 32, 64, 128]
work = [1, 2, 4, 8]
variant = [0, 1, 2]
[kernel]
function = "small"
source.opencl.text = '''
__kernel void small(int n, __global const float* a, __global float* b) {
  int i = get_global_id(0);
  if (i < n) {
    float x = a[i];
    for (int k = 0; k < 64 * work; ++k) x = x * 0.999f + variant * 0.0f;
    b[i] = x * 0.0f + a[i];
  }
}
'''
arguments = [
  { name = "n", type = "int32", value = 1024 },
  { name = "a", type = "float32", count = 1024 },
  { name = "b", type = "float32", count = 1024, access = "write" },
]
[kernel.launch]
global = ["1024"]
block = ["block_size_x"]
)toml";
}

std::string counting_problem(int count) {
  return fmt::format(R"toml(
name = "counting"
[parameters]
turn = "range(1, {})"
[kernel]
function = "work"
arguments = [
  {{ name = "n", type = "int32", value = 100 }},
  {{ name = "a", type = "float32", count = 100 }},
  {{ name = "b", type = "float32", count = 100, access = "write" }},
]
[kernel.source.c]
text = '''
static volatile int sink;
void work(int n, const float* a, float* b) {{
  for (int i = 0; i < n; ++i) b[i] = a[i];
  for (int i = 0; i < 1000 * turn; ++i) sink = i;
}}
'''
)toml",
                     count + 1);
}

std::string simulated_problem(int count) {
  return fmt::format(R"toml(
name = "fleet"
[parameters]
x = "range(1, {})"
[simulation]
flops = 1e9
efficiency = "0.3 + 0.6 / x"
[kernel]
function = "f"
arguments = []
[kernel.source.c]
text = "void f(void) {{}}"
)toml",
                     count + 1);
}

bool has_opencl() {
  for (const DeviceInfo& device : list_devices()) {
    if (device.backend == "opencl") return true;
  }
  return false;
}

}  // namespace ergotune::test
