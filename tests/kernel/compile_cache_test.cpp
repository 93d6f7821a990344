#include "kernel/compile_cache.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "temporary_folder.hpp"

namespace ergotune {
namespace {

TEST(CompileCache, KeepsWholeBinariesAndRefusesDamagedOnes) {
  const TemporaryFolder temporary;
  const auto& folder = temporary.path();
  CompileCache cache(folder);
  const Binary binary{std::string("code\0with zero", 14), "entry", "a warning"};
  const std::string key(32, 'a');
  EXPECT_FALSE(cache.find(key));
  cache.store(key, binary);
  const auto found = cache.find(key);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->bytes, binary.bytes);
  EXPECT_EQ(found->entry, binary.entry);
  EXPECT_EQ(found->log, binary.log);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) std::filesystem::resize_file(entry.path(), entry.file_size() - 1);
  }
  EXPECT_FALSE(cache.find(key));
}

TEST(CompileCache, TheOldestGoWhenItGrowsOverItsLimit) {
  const TemporaryFolder temporary;
  const auto& folder = temporary.path();
  const auto key = [](int i) {
    return std::string(30, 'a') + static_cast<char>('a' + i / 10) + static_cast<char>('0' + i % 10);
  };
  const auto bytes = [&] {
    std::uint64_t total = 0;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.is_regular_file()) total += entry.file_size();
    return total;
  };
  const Binary binary{std::string(1000, 'x'), "entry", ""};
  constexpr std::uint64_t kLimit = 20'000;
  CompileCache cache(folder, kLimit);
  for (int i = 0; i < 10; ++i) {
    cache.store(key(i), binary);
    ::usleep(2000);
  }
  for (int i = 10; i < 50; ++i) {
    EXPECT_TRUE(cache.find(key(0))) << "what is used stays, " << i;
    cache.store(key(i), binary);
    EXPECT_LE(bytes(), kLimit);
    EXPECT_TRUE(cache.find(key(i))) << "the newest stays, " << i;
    ::usleep(2000);
  }
  EXPECT_FALSE(cache.find(key(1)));
  EXPECT_GT(bytes(), kLimit / 2);

  CompileCache unlimited(folder, 0);
  for (int i = 50; i < 90; ++i) unlimited.store(key(i), binary);
  EXPECT_GT(bytes(), 2 * kLimit);
  CompileCache(folder, kLimit).prune();
  EXPECT_LE(bytes(), kLimit);
  EXPECT_TRUE(cache.find(key(89)));
}

TEST(CompileCache, EveryPartOfAJobChangesItsKey) {
  CompileJob job;
  job.source = "s";
  job.function = "f";
  job.defines = {{"a", "1"}};
  job.options = {"-O2"};
  std::set<std::string> keys{CompileCache::key(job, "x"), CompileCache::key(job, "y")};
  const auto with = [&](auto change) {
    CompileJob other = job;
    change(other);
    keys.insert(CompileCache::key(other, "x"));
  };
  with([](CompileJob& j) { j.source = "t"; });
  with([](CompileJob& j) { j.function = "g"; });
  with([](CompileJob& j) { j.defines[0].second = "2"; });
  with([](CompileJob& j) { j.defines = {{"a1", ""}}; });
  with([](CompileJob& j) { j.options.push_back(""); });
  with([](CompileJob& j) { j.language = Language::c; });
  with([](CompileJob& j) { j.arguments.push_back({}); });
  EXPECT_EQ(keys.size(), 9u);
}

TEST(CompileCache, FilesThatOptionsNameChangeTheKey) {
  TemporaryFolder folder;
  const std::string here = folder.path().string();
  for (const std::vector<std::string>& options : {std::vector<std::string>{"-I" + here},
                                                  {"-I", here},
                                                  {"-O2 -isystem " + here},
                                                  {"-include", here + "/a.h"},
                                                  {here + "/a.h"}}) {
    CompileJob job;
    job.source = "#include <a.h>\n";
    job.options = options;
    std::set<std::string> keys;
    for (const char* text : {"1", "2", "#include \"b.h\"", "1"}) {
      folder.write("a.h", text);
      keys.insert(CompileCache::key(job, "x"));
    }
    EXPECT_EQ(keys.size(), 3u) << options.front();
  }
}

TEST(CompileCache, HeadersOfTheEnvironmentAndOfMacrosChangeTheKey) {
  TemporaryFolder folder;
  CompileJob plain, macro, source;
  plain.source = "#include <a.h>\n";
  macro.source = "#include WHICH\n";
  source.source = "#define WHICH \"a.h\"\n#include WHICH\n";
  macro.options = {"-DWHICH=\"a.h\""};
  std::vector<std::set<std::string>> keys(3);
  setenv("CPATH", folder.path().c_str(), 1);
  for (const char* text : {"1", "2"}) {
    folder.write("a.h", text);
    keys[0].insert(CompileCache::key(plain, "x"));
    keys[1].insert(CompileCache::key(macro, "x"));
    keys[2].insert(CompileCache::key(source, "x"));
  }
  unsetenv("CPATH");
  for (const auto& some : keys) EXPECT_EQ(some.size(), 2u);
}

TEST(CompileCache, LibrariesThatAreLinkedChangeTheKey) {
  TemporaryFolder folder;
  CompileJob job;
  job.options = {"-L" + folder.path().string(), "-lmy", "-lm"};
  std::set<std::string> keys;
  for (const char* contents : {"1", "2"}) {
    folder.write("libmy.a", contents);
    keys.insert(CompileCache::key(job, "x"));
  }
  EXPECT_EQ(keys.size(), 2u);
}

}  // namespace
}  // namespace ergotune
