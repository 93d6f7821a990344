// Linked into a layer's tests (scripts/mutants --all): which places each test reaches. MUTANT_REACHED names the file that gets
// a line for each test, "name milliseconds place ..." (-1 where it failed), after one "- 0 place ..." for what is reached before the first (constants),
// and one "! 0 place ..." for what cannot be changed.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "mutant.hpp"

namespace mutant {
namespace {
constexpr std::size_t kPlaces = 1 << 16;
}

unsigned char* places() {
  static auto* const bytes = static_cast<unsigned char*>(mmap(nullptr, kPlaces, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  return bytes;
}

int at_work() {
  static const char* const text = std::getenv("MUTANT_PLACE");
  static const int place = text ? std::atoi(text) : 0;
  return place;
}

namespace {

void write(const char* name, long milliseconds, unsigned char what) {
  std::FILE* out = std::fopen(std::getenv("MUTANT_REACHED"), "a");
  if (!out) return;
  std::fprintf(out, "%s %ld", name, milliseconds);
  for (std::size_t place = 0; place < kPlaces; ++place)
    if (places()[place] & what) std::fprintf(out, " %zu", place);
  std::fprintf(out, "\n");
  std::fclose(out);
}

class Listener : public testing::EmptyTestEventListener {
  void OnTestProgramStart(const testing::UnitTest&) override { write("-", 0, kReached); }
  void OnTestStart(const testing::TestInfo&) override {
    for (std::size_t place = 0; place < kPlaces; ++place) places()[place] &= kImpossible;
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    const auto name = std::string(test.test_suite_name()) + "." + test.name();
    write(name.c_str(), test.result()->Passed() ? static_cast<long>(test.result()->elapsed_time()) : -1, kReached);
  }
  void OnTestProgramEnd(const testing::UnitTest&) override { write("!", 0, kImpossible); }
};

// Only where somebody asks: a mutant's run pays nothing for it.
const bool listening = [] {
  if (std::getenv("MUTANT_REACHED")) testing::UnitTest::GetInstance()->listeners().Append(new Listener);
  return true;
}();

}  // namespace
}  // namespace mutant
