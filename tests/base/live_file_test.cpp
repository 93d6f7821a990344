#include "base/live_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <thread>

namespace ergotune {
namespace {

std::filesystem::path place(const char* name) {
  return std::filesystem::path(::testing::TempDir()) / (std::string(name) + std::to_string(::getpid()));
}

TEST(LiveFileTest, WhatOneWritesTheOtherReads) {
  const auto file = place("live-words");
  EXPECT_EQ(LiveFile::open(file), nullptr);
  {
    const auto session = LiveFile::create(file);
    ASSERT_NE(session, nullptr);
    const auto reader = LiveFile::open(file);
    ASSERT_NE(reader, nullptr);
    EXPECT_EQ(reader->state(), "");
    session->set_state("some words");
    EXPECT_EQ(reader->state(), "some words");
    session->set_state(std::string(LiveFile::kStateBytes + 1, 'x'));
    EXPECT_EQ(reader->state(), "some words") << "what does not fit is left out";
    reader->ask(kPause | kConfirmNow);
    session->take_back(kConfirmNow);
    EXPECT_EQ(session->requested(), kPause);
    EXPECT_TRUE(reader->owner_lives());
    EXPECT_EQ(reader->owner(), ::getpid());
  }
  EXPECT_FALSE(std::filesystem::exists(file)) << "it goes with its session";
}

TEST(LiveFileTest, TheOldestSamplesGiveWay) {
  const auto file = place("live-samples");
  const auto session = LiveFile::create(file), reader = LiveFile::open(file);
  ASSERT_TRUE(session && reader);
  std::uint64_t next = 0;
  EXPECT_TRUE(reader->samples(next).empty());
  for (std::size_t i = 0; i < LiveFile::kSamples + 10; ++i) {
    LiveSample sample;
    sample.power_w = static_cast<float>(i);
    session->add(sample);
  }
  const auto list = reader->samples(next);
  ASSERT_EQ(list.size(), LiveFile::kSamples);
  EXPECT_EQ(list.front().power_w, 10);
  EXPECT_EQ(next, LiveFile::kSamples + 10);
  EXPECT_TRUE(reader->samples(next).empty());
}

TEST(LiveFileTest, WordsAreNeverHalfOfOneAndHalfOfAnother) {
  const auto file = place("live-torn");
  const auto session = LiveFile::create(file), reader = LiveFile::open(file);
  ASSERT_TRUE(session && reader);
  session->set_state(std::string(1000, 'a'));
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (char c = 'a'; !stop; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) session->set_state(std::string(1000, c));
  });
  int whole = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::string words = reader->state();
    if (words.empty()) continue;  // it kept changing
    ++whole;
    ASSERT_EQ(words, std::string(words.size(), words.front()));
  }
  stop = true;
  writer.join();
  EXPECT_GT(whole, 0);
}

TEST(LiveFileTest, AFileOfSomebodyElseIsLeftAlone) {
  const auto file = place("live-other");
  std::ofstream(file) << "not ours";
  EXPECT_EQ(LiveFile::open(file), nullptr);
  std::ofstream(file) << std::string(1 << 20, '\0');
  EXPECT_EQ(LiveFile::open(file), nullptr);
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/etc/passwd", file);
  EXPECT_EQ(LiveFile::open(file), nullptr) << "no link is followed";
  std::filesystem::remove(file);
  EXPECT_EQ(LiveFile::create("/no/such/folder/live"), nullptr);
}

}  // namespace
}  // namespace ergotune
