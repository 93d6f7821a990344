// For the few tests that need a quiet machine: they try again by themselves, and say why.
#pragma once

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

namespace ergotune::test {

/// Runs `attempt`, which uses EXPECT_ and ASSERT_ as any test does, until nothing in it fails, `tries` times
/// at most; what fails in the last try fails the test. `reason` says what on a busy machine is not the tested
/// code's fault. Use it where the machine is part of the test, never to hide what is wrong now and then.
template <class Attempt>
void with_patience(const char* reason, Attempt attempt, int tries = 5) {
  for (int i = 1; i < tries; ++i) {
    testing::TestPartResultArray results;
    {
      testing::ScopedFakeTestPartResultReporter listen(testing::ScopedFakeTestPartResultReporter::INTERCEPT_ALL_THREADS,
                                                       &results);
      attempt();
    }
    const testing::TestPartResult* first = nullptr;
    for (int k = 0; k < results.size() && !first; ++k)
      if (results.GetTestPartResult(k).failed()) first = &results.GetTestPartResult(k);
    if (!first) return;
    std::printf("try %d: %s:%d: %s\n  again, because %s\n", i, first->file_name(), first->line_number(),
                first->message(), reason);
    ::usleep(300'000 * static_cast<useconds_t>(i));  // what keeps the machine busy may pass
  }
  attempt();
}

}  // namespace ergotune::test
