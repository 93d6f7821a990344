// CSV from any hand, cell by cell.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "store/written_files.hpp"

namespace ergotune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class Csv : public WrittenFiles {
 protected:
  Configuration configuration(const std::string& cells) {
    const Recording r = read("c.csv", "a,b,status\n" + cells + ",ok\n");
    EXPECT_EQ(r.size(), 1u) << cells;
    return r.configuration(0);
  }
};

TEST_F(Csv, ACellIsANumberATruthOrWords) {
  const std::pair<const char*, Value> cells[] = {
      {"7", 7},           {"-3", -3},         {"0.5", 0.5},
      {"1e3", 1000.0},    {"True", true},     {"true", true},
      {"False", false},   {"false", false},   {"TRUE", "TRUE"},
      {"7x", "7x"},       {"0.5x", "0.5x"},   {"1 ", "1 "},
      {"", ""},           {"\"7\"", 7},       {"a b", "a b"},
      {"\"\"\"\"", "\""}, {"\"a,b\"", "a,b"}, {"\"a\r\nb\"", "a\r\nb"},
      {"a\"b\"c", "abc"}, {"\"\"", ""},       {"99999999999999999999", 1e20}};
  for (const auto& [cell, value] : cells) {
    const Configuration found = configuration("1," + std::string(cell));
    EXPECT_EQ(found[1].data(), value.data()) << cell;
    EXPECT_EQ(found[0], Value(1));
  }
  EXPECT_EQ(configuration(",x")[0], Value("")) << "an empty cell first is no empty line";
}

TEST_F(Csv, AQuoteAtTheVeryEndClosesTheLastCell) {
  EXPECT_EQ(read("q.csv", "a,status,message\n1,ok,\"the end\"").messages.at(0), "the end");
  EXPECT_EQ(read("q.csv", "a,status,message\n1,ok,\"say \"\"x\"\"\"\n").messages.at(0), "say \"x\"");
  EXPECT_THAT(read("q.csv", "a,status,message\n1,ok,\"\"\n2,ok,").messages, IsEmpty()) << "no words";
}

TEST_F(Csv, ARowWithoutItsLineEndIsReadAndEmptyLinesAreNone) {
  const Recording r = read("r.csv", "a,status\n\n1,ok\n\r\n\n2,timeout");
  EXPECT_THAT(r.statuses, ElementsAre(Status::ok, Status::timeout));
  EXPECT_THAT(r.warnings, SizeIs(1)) << "it may be cut off";
}

TEST_F(Csv, OnlyTheLastRowMayBeCutOff) {
  const Recording r = read("r.csv", "a,b,status\n1,2,ok\n3,4");
  EXPECT_THAT(r.statuses, SizeIs(1));
  EXPECT_THAT(r.warnings, ElementsAre("cut off after 1 rows; the cut row is lost"));
  EXPECT_EQ(complaint("r.csv", "a,b,status\n3,4\n1,2,ok"), "r.csv:2: this row has 2 cells, and the header 3");
  EXPECT_EQ(complaint("r.csv", "a,b,status\n1,2,ok\n3,4\n"),
            "r.csv:3: this row has 2 cells, and the header 3");
  EXPECT_EQ(complaint("r.csv", "a,b,status\n1,2,ok\n3,4,ok,5\n"),
            "r.csv:3: this row has 4 cells, and the header 3");
  EXPECT_EQ(complaint("r.csv", "a,b,status\n1,2,ok\n3,4,odd\n"), "r.csv:3: unknown status \"odd\"");
}

TEST_F(Csv, WhatIsNoRecordingIsSaidOfItsHeader) {
  for (const char* text : {"a\n1\n", "status\nok\n", "status,a\nok,1\n", "a,b\n1,2\n", "time,a\n1,2\n"})
    EXPECT_THAT(complaint("n.csv", text), HasSubstr("n.csv:1: this is no recording that ergotune knows"))
        << text;
  EXPECT_EQ(read("two.csv", "a,status\n").size(), 0u) << "nothing measured yet";
}

TEST_F(Csv, ParametersStandBeforeWhatCanOnlyHaveBeenMeasured) {
  for (const char* measured :
       {"time", "energy", "throttled_share", "temperature", "ps_energy", "nvml_power", "core_freq"}) {
    const Recording r = read("p.csv", "a,registers,error," + std::string(measured) + ",x\n1,2,3,4,5\n");
    EXPECT_THAT(r.parameters, SizeIs(3)) << measured;
    EXPECT_THAT(r.columns, SizeIs(2)) << measured;
  }
  EXPECT_THAT(read("p.csv", "a,time,status,x\n1,2,ok,5\n").parameters, SizeIs(2))
      << "status says where they end";
}

TEST_F(Csv, ErrorsAndNumbersBelongToTheColumnOfTheirName) {
  const Measurement m = read("e.csv",
                             "a,status,time,energy,energy_standard_error,x,x_standard_error,x_n,y,z_standard_"
                             "error,z_n,registers,"
                             "w,w_standard_error,v,v_n\n"
                             "1,ok,2,3,0.5,4,0.25,7,5,6,8,40,,9,,3\n")
                            .measurement(0);
  EXPECT_EQ(m.quantities.at("time").n, 1) << "measured once, as nothing says otherwise";
  EXPECT_EQ(m.quantities.at("time").standard_error, 0);
  EXPECT_EQ(m.quantities.at("time").method, "recorded");
  EXPECT_EQ(m.quantities.at("energy").standard_error, 0.5);
  EXPECT_EQ(m.quantities.at("x").n, 7) << "what was read several times was measured";
  EXPECT_EQ(m.quantities.at("x").standard_error, 0.25);
  EXPECT_EQ(m.quantities.at("registers").value, 40);
  EXPECT_THAT(m.quantities, SizeIs(4));
  EXPECT_EQ(m.metrics, (std::map<std::string, double>{{"y", 5}, {"z_standard_error", 6}, {"z_n", 8}}));
  EXPECT_THAT(m.metric_errors, IsEmpty());
  EXPECT_EQ(read("e.csv", "a,status,y,y_standard_error\n1,ok,5,0.5\n").measurement(0).metric_errors.at("y"),
            0.5);
}

TEST_F(Csv, WhatIsNotMeasuredIsNoColumn) {
  const Recording r = read(
      "i.csv", "a,status,provenance,finished_at,warnings,time\n1,ok,1,2,3,4\n2,ok,1,2,3,nan\n3,ok,1,2,3,x\n");
  EXPECT_THAT(r.columns, SizeIs(1));
  EXPECT_THAT(r.column("time")->value, ElementsAre(4, testing::IsNan(), testing::IsNan()));
  EXPECT_THAT(r.compile_seconds, IsEmpty()) << "no column of costs";
  for (const char* cost : {"compile_seconds", "verify_seconds", "measure_seconds", "tuner_seconds"}) {
    const Recording one = read("i.csv", "a,status," + std::string(cost) + "\n1,ok,2\n");
    const Measurement m = one.measurement(0);
    EXPECT_EQ(m.compile_seconds + m.verify_seconds + m.measure_seconds + m.tuner_seconds, 2) << cost;
    EXPECT_THAT(one.columns, IsEmpty()) << cost;
  }
}

}  // namespace
}  // namespace ergotune
