// What every background evaluator does for its callers: results, cancellation, faults, its end.
#include "evaluate/async_evaluator.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <set>

#include "ergotune/error.hpp"

namespace ergotune {
namespace {

/// Index 1: runs until it is interrupted. Index 2: ends the work.
class Slow final : public AsyncEvaluator {
 public:
  Slow() { start_thread(); }
  ~Slow() override { end_thread(); }
  std::string description() const override { return "slow"; }
  Provenance provenance() const override { return Provenance::measured; }
  std::atomic<bool> running{false};

 private:
  void accept(EvaluationRequest request) override { queue_.push_back(std::move(request)); }
  void drop() override { queue_.clear(); }
  void interrupt() override { interrupted_ = true; }
  double watch(std::vector<pollfd>& polled) override { return queue_.empty() ? AsyncEvaluator::watch(polled) : 0; }
  void advance() override {
    if (queue_.empty()) return;
    const EvaluationRequest request = std::move(queue_.front());
    queue_.pop_front();
    if (request.index == 2) throw Error("the device is lost");
    note_run(request, 0);
    interrupted_ = false;
    running = true;
    while (request.index == 1 && !interrupted_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    running = false;
    deliver({request.id, request.index, {}, {}});
  }

  std::atomic<bool> interrupted_{false};
  std::deque<EvaluationRequest> queue_;
};

EvaluationRequest request(std::uint64_t id, ConfigurationIndex index = 0) {
  EvaluationRequest request;
  request.id = id;
  request.index = index;
  return request;
}

TEST(AsyncEvaluator, EveryRequestHasOneResult) {
  Slow evaluator;
  for (std::uint64_t id = 0; id < 100; ++id) evaluator.submit(request(id));
  EXPECT_EQ(evaluator.pending(), 100u);
  std::set<std::uint64_t> ids;
  while (ids.size() < 100) {
    const auto result = evaluator.wait(20);
    ASSERT_TRUE(result);
    EXPECT_TRUE(ids.insert(result->id).second);
  }
  EXPECT_EQ(evaluator.pending(), 0u);
  EXPECT_FALSE(evaluator.wait(0));
}

TEST(AsyncEvaluator, CancellingEndsWhatRunsAndDropsWhatWaits) {
  Slow evaluator;
  for (std::uint64_t id = 0; id < 3; ++id) evaluator.submit(request(id, 1));
  while (!evaluator.running) std::this_thread::yield();
  evaluator.cancel();
  EXPECT_FALSE(evaluator.running);
  EXPECT_EQ(evaluator.pending(), 0u);
  EXPECT_FALSE(evaluator.wait(0));
  evaluator.submit(request(7));
  ASSERT_EQ(evaluator.wait(20).value().id, 7u) << "what is asked later runs";
  for (std::uint64_t id = 0; id < 3; ++id) evaluator.submit(request(id, 1));  // its end does not wait for them
}

TEST(AsyncEvaluator, AFaultIsThrownOnceTheResultsBeforeItAreTaken) {
  Slow evaluator;
  evaluator.submit(request(1));
  evaluator.submit(request(2, 2));
  evaluator.submit(request(3));
  EXPECT_EQ(evaluator.wait(20).value().id, 1u);
  for (int i = 0; i < 2; ++i) EXPECT_THROW(evaluator.wait(20), Error);
  evaluator.submit(request(4));
  EXPECT_THROW(evaluator.wait(20), Error);
  evaluator.cancel();
}

TEST(AsyncEvaluator, AJournalThatIsTakenAwayIsNotUsedAnyMore) {
  struct Journal final : RunJournal {
    std::atomic<int> calls{0};
    void about_to_run(const EvaluationRequest&, std::size_t) override { ++calls; }
  };
  Slow evaluator;
  {
    Journal journal;
    evaluator.set_journal(&journal);
    evaluator.submit(request(1));
    EXPECT_TRUE(evaluator.wait(20));
    EXPECT_EQ(journal.calls, 1);
    for (std::uint64_t id = 2; id < 50; ++id) evaluator.submit(request(id));
    evaluator.set_journal(nullptr);
  }
  for (std::uint64_t id = 2; id < 50; ++id) EXPECT_TRUE(evaluator.wait(20));
}

}  // namespace
}  // namespace ergotune
