// Caches as their text lies in the file: on lines or not, with blanks, damaged here and there, cut off
// anywhere.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/written_files.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CacheLayout : public WrittenFiles {
 protected:
  static std::string entry(int i) {
    return '"' + std::to_string(i) + R"(": {"b": )" + std::to_string(i) + R"(, "time": 4})";
  }
  /// These texts, with what is to stand before, between and behind them; `lines` of them are entries of their
  /// own number.
  static std::string cache(const std::vector<std::string>& entries, const std::string& begin = "\n",
                           const std::string& between = ",\n", const std::string& end = "}\n}") {
    std::string text = head();
    for (std::size_t i = 0; i < entries.size(); ++i) text += (i ? between : begin) + entries[i];
    return text + end;
  }
  static std::string head() {
    return R"({"kernel_name": "k", "tune_params_keys": ["b"], "tune_params": {"b": [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]}, "cache": {)";
  }
  static std::vector<std::string> entries(int count) {
    std::vector<std::string> result;
    for (int i = 0; i < count; ++i) result.push_back(entry(i % 10));
    return result;
  }
  /// Reads it, and says which entries came of it.
  std::string numbers(const std::string& text) {
    recording_ = read("c.json", text);
    std::string result;
    for (std::size_t row = 0; row < recording_.size(); ++row)
      result += recording_.configuration(row)[0].to_string();
    return result;
  }
  Recording recording_;
};

TEST_F(CacheLayout, BlanksMayStandAnywhere) {
  const char* const begins[] = {"\n", "", "\n\n", " \t\n", "\r\n", "\n  ", "\n\t"};
  const char* const betweens[] = {",\n",   ",",     " ,\n",   ",\r\n", "\t,\t\r\n\t ",
                                  ",\n\n", "\n,\n", ",\n \n", ", "};
  const char* const ends[] = {"}\n}", "}}", "\n}\n}", "\n}}", " } }", "}\r\n}\r\n", "\t}\n}\n", "\n }\n }\n"};
  const auto check = [&](const char* begin, const char* between, const char* end) {
    EXPECT_EQ(numbers(cache(entries(6), begin, between, end)), "012345")
        << begin << "|" << between << "|" << end;
    EXPECT_THAT(recording_.warnings, IsEmpty()) << begin << "|" << between << "|" << end;
  };
  for (const char* between : betweens) {
    for (const char* begin : begins) check(begin, between, ends[0]);
    for (const char* end : ends) check(begins[0], between, end);
  }
}

TEST_F(CacheLayout, AnEntryMayBeWrittenWithoutBlanksOrWithMany) {
  for (const char* form :
       {R"("x":{"b":8,"time":4})", R"("x" :	{"b":8,"time":4})", R"("x": {"b":8,"time":4 })",
        R"("x\"}": {"b":8,"time":4})", R"("x": {"b": 8, "o": {"x": "}}"}, "time": 4})",
        R"("x": {"b": 8, "o": [1, {"x": 2}]})", R"("x": {"b": 8, "o": {"x": {"y": 1}}})"}) {
    auto list = entries(6);
    list[3] = form;
    EXPECT_EQ(numbers(cache(list)), "012845") << form;
    EXPECT_THAT(recording_.warnings, IsEmpty()) << form;
    list[5] = form;
    EXPECT_EQ(numbers(cache(list)), "012848") << form << " last";
    EXPECT_THAT(recording_.warnings, IsEmpty()) << form;
    EXPECT_EQ(numbers(cache(list, "", ",")), "012848") << form << " on one line";
    EXPECT_THAT(recording_.warnings, IsEmpty()) << form;
  }
}

TEST_F(CacheLayout, ADamagedLineLosesOnlyItself) {
  for (const char* line : {"x",
                           "\"x",
                           R"("x")",
                           R"("x" y)",
                           R"("x":)",
                           R"("x": )",
                           R"("x": y)",
                           R"("x" {"b": 8})",
                           R"("x": {)",
                           R"("x": {,)",
                           R"("x": {"b": 8)",
                           R"("x": {"b": 8,)",
                           R"("x": {"b": 8}y)",
                           R"("x": {"b": 8]})",
                           R"("x": {"b": })",
                           R"("x": {"o": {"b": 8})",
                           R"("x": {"o": 8})",
                           R"("x": [8])",
                           R"("x": {"b": null})",
                           R"("x": {"b": [8]})",
                           "[]",
                           "{}",
                           "\x01"}) {
    auto list = entries(9);
    list[4] = line;
    EXPECT_EQ(numbers(cache(list)), "01235678") << line;
    EXPECT_THAT(recording_.warnings, ElementsAre("1 damaged entries were left out")) << line;
  }
  auto list = entries(14);
  list[2] = list[6] = "x";
  EXPECT_EQ(numbers(cache(list, "\n", ",\n", ",\n\"9\": {\"b\"")), "013457890123");
  EXPECT_THAT(recording_.warnings, ElementsAre("cut off after 12 entries; the cut entry is lost",
                                               "2 damaged entries were left out"));
}

TEST_F(CacheLayout, EntriesThatSpreadOverLinesAreReadAmongOthersThatDoNot) {
  auto list = entries(8);
  for (std::size_t i = 0; i < list.size(); i += 2) list[i].replace(list[i].find('{'), 1, "\n{\n");
  EXPECT_EQ(numbers(cache(list)), "01234567");
  EXPECT_THAT(recording_.warnings, IsEmpty());
  EXPECT_EQ(numbers(cache({entry(0), entry(1)}, "", ", ", "}}\n")), "01") << "two on the only line";
  EXPECT_THAT(recording_.warnings, IsEmpty());
}

TEST_F(CacheLayout, OnOneLineADamagedEntryLosesOnlyItself) {
  for (const char* damaged : {R"("x": {"o": 1})", R"("x": {"b": null})", R"("x": {"b": })"}) {
    auto list = entries(6);
    list[2] = damaged;
    EXPECT_EQ(numbers(cache(list, "", ",")), "01345") << damaged;
    EXPECT_THAT(recording_.warnings, ElementsAre("1 damaged entries were left out")) << damaged;
  }
  for (const char* broken :
       {R"("x" {"b": 1})", R"("x": 7)", R"("x": "y")", R"("x")"}) {  // where the next begins nobody can say
    auto list = entries(6);
    list[2] = broken;
    EXPECT_EQ(numbers(cache(list, "", ",")), "01") << broken;
    EXPECT_THAT(recording_.warnings, ElementsAre("cut off after 2 entries; the cut entry is lost")) << broken;
  }
  auto list = entries(6);
  list[2] = "x";
  EXPECT_EQ(numbers(cache(list, "", ",")), "01");
  EXPECT_THAT(recording_.warnings,
              ElementsAre("not closed, as a cache in use: all of its 2 entries were read"));
}

TEST_F(CacheLayout, OneLineCutAnywhereLosesOnlyTheCutEntry) {
  const std::string whole = cache(entries(4), "", ",", "}}"), begin = head();
  for (std::size_t cut = begin.size(); cut <= whole.size(); ++cut) {
    std::string expected;
    std::size_t end = begin.size() - 1;
    for (int i = 0; i < 4; ++i) {
      end += 1 + entry(i).size();
      if (cut >= end) expected += std::to_string(i);
    }
    EXPECT_EQ(numbers(whole.substr(0, cut)), expected) << "cut at " << cut;
    EXPECT_EQ(recording_.warnings.size(), cut + 1 < whole.size() ? 1u : 0u) << "cut at " << cut;
  }
}

TEST_F(CacheLayout, WhatStandsBehindTheEntriesIsNone) {
  for (const char* end : {"},\n\"more\": {\n\"7\": {\"b\": 7, \"time\": 4}\n}\n}",
                          "}\n,\n\"more\": {\n\"7\": {\"b\": 7}}\n}"}) {
    for (const char* between : {",\n", ","}) {
      EXPECT_EQ(numbers(cache(entries(6), "\n", between, "\n" + std::string(end))), "012345")
          << between << end;
      EXPECT_THAT(recording_.warnings, IsEmpty()) << between << end;
    }
  }
}

constexpr std::size_t kBlock = 256 * 1024;  // as much as is read at once

/// An entry with so many letters in it.
std::string padded(std::string entry, std::size_t letters) {
  return entry.insert(entry.size() - 1, R"(, "pad": ")" + std::string(letters, 'x') + '"');
}

TEST_F(CacheLayout, TheEndMayStandInABlockOfItsOwn) {
  for (const char* end : {"}\n}", "\n}"}) {
    for (std::size_t size = 2 * kBlock - 3; size <= 2 * kBlock + 3; ++size) {
      auto list = entries(6);
      list[1] = padded(list[1], size - cache(list, "\n", ",\n", end).size() - 11);
      const std::string text = cache(list, "\n", ",\n", end);
      ASSERT_EQ(text.size(), size);
      EXPECT_EQ(numbers(text), "012345") << size;
      EXPECT_THAT(recording_.warnings, IsEmpty()) << size;
      EXPECT_EQ(numbers(text.substr(0, size - 8)), "01234") << size;
      EXPECT_THAT(recording_.warnings, ElementsAre("cut off after 5 entries; the cut entry is lost")) << size;
    }
  }
}

TEST_F(CacheLayout, LinesOfAnyLengthAreWholeLines) {
  auto list = entries(30);
  list[11] = padded(list[11], 3 * kBlock);
  EXPECT_EQ(numbers(cache(list)), "012345678901234567890123456789");
  EXPECT_THAT(recording_.warnings, IsEmpty());
  EXPECT_EQ(numbers(cache(list, "", ",", "}}")), "012345678901234567890123456789") << "all on one";
  EXPECT_THAT(recording_.warnings, IsEmpty());
}

TEST_F(CacheLayout, WhatIsNoCacheIsSaid) {
  const std::string cut = "c.json: this cache is cut off before its first entry; nothing can be read from it";
  EXPECT_EQ(complaint("c.json", R"({"tune_params": {)"), cut);
  EXPECT_EQ(complaint("c.json", R"({"kernel_name": "k", "tune_params_keys": ["b"]})"), cut);
  EXPECT_EQ(complaint("c.json", R"({"tune_params_keys": ["b"], "tune_params": {"b": [1]}, "cache": [)"), cut);
  EXPECT_EQ(complaint("c.json", R"({"x": 1})"), "c.json: this is no Kernel Tuner cache: it has no \"cache\"");
  for (const char* text : {R"({"cache": {}})", R"({"tune_params_keys": ["b"], "cache": {}})",
                           R"({"tune_params_keys": ["b"], "tune_params": {"c": [1]}, "cache": {}})"})
    EXPECT_THAT(complaint("c.json", text), HasSubstr("c.json: this is no Kernel Tuner cache: ")) << text;
  EXPECT_EQ(complaint("c.json", " \n"), "c.json: the file is empty");
  EXPECT_EQ(complaint("c.json", R"( {"ConfigurationSpace": {}})"),
            "c.json: this is a T1 file: a problem, not results");
  EXPECT_EQ(
      numbers(
          R"({"results": 1, "tune_params_keys": ["b"], "tune_params": {"b": [1]}, "cache": {"1": {"b": 1}}})"),
      "1")
      << "results of its own";
}

}  // namespace
}  // namespace ergotune
