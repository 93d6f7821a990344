#include "evaluate/recorded/replay.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "ergotune/error.hpp"
#include "ergotune/problem.hpp"
#include "parameters.hpp"

namespace ergotune {
namespace {

// (x, y): (1, 10) took 2 s, (1, 20) failed, (2, 10) took 3 s; (2, 20) was not recorded.
Recording recording() {
  Recording r;
  r.name = "kernel";
  r.device = "some GPU";
  r.parameters = {test::listed("x", {1, 2}), test::listed("y", {10, 20})};
  r.positions = {0, 0, 0, 1, 1, 0};
  r.statuses = {Status::ok, Status::runtime_error, Status::ok};
  RecordedColumn time;
  time.name = "time";
  time.value = {2, std::nan(""), 3};
  r.columns = {time};
  r.compile_seconds = {0.5f, 0.25f, 1.0f};
  r.verify_seconds = {0.25f, 0, 0};
  r.run_seconds = {2.0f, 0, 3.0f};
  r.framework_seconds = {0.25f, std::nanf(""), 0};
  return r;
}

EvaluationResult evaluate(Evaluator& replay, const SearchSpace& space, ConfigurationIndex index) {
  EvaluationRequest request;
  request.id = 42;
  request.index = index;
  request.configuration = space.configuration(index);
  replay.submit(request);
  EXPECT_EQ(replay.pending(), 1u);
  const auto result = replay.wait(1);
  EXPECT_TRUE(result.has_value());
  EXPECT_EQ(result->id, 42u);
  EXPECT_EQ(result->index, index);
  return *result;
}

TEST(Replay, AnswersByNameInAnyOrderOfParameters) {
  const SearchSpace space =
      SearchSpace::build({test::listed("y", {20, 10}), test::listed("constant", {7}), test::listed("x", {2, 1})}, {});
  const auto replay = make_replay(std::make_shared<const Recording>(recording()), space);
  EXPECT_EQ(replay->provenance(), Provenance::replayed);
  EXPECT_NE(replay->description().find("some GPU"), std::string::npos);
  for (ConfigurationIndex i = 0; i < space.size(); ++i) {
    const Configuration c = space.configuration(i);
    const Measurement m = evaluate(*replay, space, i).measurement;
    if (c[0] == Value(10)) {
      ASSERT_EQ(m.status, Status::ok);
      EXPECT_NEAR(*m.value("time"), c[2] == Value(1) ? 2 : 3, 1e-12);
      EXPECT_EQ(m.quantities.at("time").provenance, Provenance::replayed);
    } else {
      EXPECT_EQ(m.status, c[2] == Value(1) ? Status::runtime_error : Status::unsupported);
    }
  }
  EXPECT_FALSE(replay->wait(0).has_value());
}

TEST(Replay, RefusesAnotherProblemsSpace) {
  const auto shared = std::make_shared<const Recording>(recording());
  const SearchSpace missing = SearchSpace::build({test::listed("x", {1, 2})}, {});
  EXPECT_THROW(make_replay(shared, missing), UserError);
  const SearchSpace unknown =
      SearchSpace::build({test::listed("x", {1, 2}), test::listed("y", {10, 20}), test::listed("z", {1, 2})}, {});
  EXPECT_THROW(make_replay(shared, unknown), UserError);
}

TEST(ReplayTable, KnowsCostsAndOnlyRecordedConfigurations) {
  const ReplayTable table(recording());
  ASSERT_EQ(table.space().size(), 3u);
  const auto first = *table.space().index_of(Configuration{1, 10});
  EXPECT_NEAR(table.seconds(first), 3.0, 1e-6);
  EXPECT_NEAR(table.run_seconds(first), 2.0, 1e-6);
  const auto failed = *table.space().index_of(Configuration{1, 20});
  EXPECT_EQ(table.status(failed), Status::runtime_error);
  EXPECT_NEAR(table.seconds(failed), 0.25, 1e-6);
}

TEST(ReplayTable, SpaceAndProblemOfARecording) {
  Recording r = recording();
  EXPECT_EQ(space_of(r).size(), 3u);
  Restriction restriction;
  restriction.expression = Expression::parse("x * y < 40");
  r.restrictions = {restriction};
  r.restrictions_known = true;
  EXPECT_EQ(space_of(r).size(), 3u);
  EXPECT_EQ(problem_of(r).parameters.size(), 2u);
  EXPECT_EQ(problem_of(r).objective.text, r.objective.text);
}

}  // namespace
}  // namespace ergotune
