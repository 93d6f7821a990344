// Recordings that are cut off, damaged, or made to fill memory.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <fstream>
#include <sstream>

#include "store/written_files.hpp"

namespace ergotune {
namespace {

std::string packed(const std::string& text) {
  std::string out(compressBound(text.size()) + 64, '\0');
  z_stream stream{};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string rows(int count) {
  std::string text = "bx,status,time\n";
  for (int i = 0; i < count; ++i) text += std::to_string(i) + ",ok,0." + std::to_string(1234567 + 7919 * i) + "\n";
  return text;
}

std::string cache(int count) {
  std::string text = R"({"kernel_name": "k", "device_name": "d", "tune_params_keys": ["x"], "tune_params": {"x": [)";
  for (int i = 0; i < count; ++i) text += (i ? ", " : "") + std::to_string(i);
  text += "]}, \"cache\": {\n";
  for (int i = 0; i < count; ++i)
    text += "\"" + std::to_string(i) + "\": {\"x\": " + std::to_string(i) +
            ", \"time\": " + std::to_string(1.0 + 0.0137 * i) + "}" + (i + 1 < count ? ",\n" : "}\n}");
  return text;
}

class Damaged : public WrittenFiles {};

TEST_F(Damaged, ACutStreamIsSaidWhereverItWasCut) {
  for (const std::string& text : {rows(300), cache(300)}) {
    const std::string name = text[0] == '{' ? "c.json.gz" : "c.csv.gz";
    const std::string whole = packed(text);
    EXPECT_TRUE(read(name, whole).warnings.empty()) << name;
    const Recording all = read(name, whole);
    for (std::size_t size = whole.size() / 2; size < whole.size(); size += 31) {
      const Recording part = read(name, whole.substr(0, size));
      EXPECT_FALSE(part.warnings.empty()) << name << " cut to " << size;
      ASSERT_LE(part.size(), all.size());
      for (std::size_t i = 0; i < part.size(); ++i)
        EXPECT_EQ(part.measurement(i).value("time"), all.measurement(i).value("time"))
            << "no part of a number is a number";
    }
  }
}

TEST_F(Damaged, AFlippedBitIsDamageAndNoEmptyFile) {
  for (const std::string& text : {rows(300), cache(300)}) {
    std::string bytes = packed(text);
    bytes[bytes.size() - 7] = static_cast<char>(bytes[bytes.size() - 7] ^ 1);  // of the checksum
    const std::string said = complaint(text[0] == '{' ? "c.json.gz" : "c.csv.gz", bytes);
    EXPECT_NE(said.find("damaged"), std::string::npos) << said;
  }
}

TEST_F(Damaged, ALastLineWithoutAnEndIsRemarked) {
  EXPECT_TRUE(read("a.csv", "bx,status,time\n1,ok,0.439\n").warnings.empty());
  EXPECT_EQ(read("a.csv", "bx,status,time\n1,ok,0.439").warnings.size(), 1u);
}

TEST_F(Damaged, WhatIsMadeToFillMemoryIsRefused) {
  const std::string brackets = packed(std::string(100u << 20, '['));
  EXPECT_LT(brackets.size(), 200'000u);
  EXPECT_THROW(read("b.json.gz", brackets), UserError);
  EXPECT_THROW(read("z.csv.gz", packed(std::string(100u << 20, '1'))), UserError);
  EXPECT_THROW(load_recording("/dev/zero"), UserError);
  const auto fifo = folder_.path() / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THROW(load_recording(fifo), UserError);
}

TEST_F(Damaged, NestingIsBounded) {
  constexpr int kDeep = 300'000;
  const std::string deep = std::string(kDeep, '[') + std::string(kDeep, ']');
  EXPECT_THROW(read("a.json", "{\"results\": " + deep + "}"), UserError);
  EXPECT_THROW(read("b.json", R"({"results": [{"configuration": {"x": )" + deep + R"(}, "invalidity": "correct"}]})"),
               UserError);
  EXPECT_THROW(read("c.json", R"({"kernel_name": "k", "tune_params_keys": ["x"], "tune_params": {"x": [)" + deep +
                                  R"(]}, "cache": {}})"),
               UserError);
}

}  // namespace
}  // namespace ergotune
