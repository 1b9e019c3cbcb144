#include "planner/io/results/chrome_trace_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "planner/io/results/chrome_trace.h"
#include "planner/ir/basics/error.h"
#include "tests/support/golden_message.h"
#include "tests/support/message_of.h"

namespace pfeife {
namespace {

Event compute(std::int64_t stage, Nanoseconds start, Nanoseconds end) {
  return {.rank = RankId{stage},
          .peer = RankId{stage},
          .cell = forward(StageId{stage}, MicrobatchId{0}),
          .start = start,
          .end = end};
}

class TraceFile : public ::testing::Test {
 protected:
  TraceFile() : file_(::testing::TempDir() + "trace_" + std::to_string(getpid()) + ".json") {}
  ~TraceFile() override { std::filesystem::remove(file_); }
  void write(const std::string& text) const { std::ofstream(file_) << text; }

  std::filesystem::path file_;
};

TEST_F(TraceFile, GivesTheLengthsThatWereWrittenToTheNanosecond) {
  Trace estimated{TraceSource::Estimated, 2, {}, {}};
  estimated.events.push_back(compute(0, Nanoseconds{100}, Nanoseconds{1'234'667}));
  estimated.events.push_back(
      {.kind = TaskKind::Transfer,
       .rank = RankId{0},
       .peer = RankId{1},
       .cell = send(StageId{0}, StageId{1}, MicrobatchId{0}, Direction::Forward),
       .start = Nanoseconds{1'234'667},
       .end = Nanoseconds{1'234'668}});
  estimated.events.push_back(compute(1, Nanoseconds{1'234'668}, Nanoseconds{9'000'000'000'001}));
  Trace simulated = estimated;
  simulated.source = TraceSource::Simulated;
  for (Event& event : simulated.events) event.end += Nanoseconds{5};
  std::ofstream out(file_);
  write_chrome_trace(out, std::vector{simulated, estimated}, "two engines");
  out.close();

  const ActionTimes times = read_action_times(file_, TraceSource::Estimated);
  EXPECT_EQ(times.length, (std::map<std::string, Nanoseconds>{
                              {"0F0", Nanoseconds{1'234'567}},
                              {"0SEND_F0", Nanoseconds{1}},
                              {"1F0", Nanoseconds{9'000'000'000'001 - 1'234'668}}}));
  EXPECT_EQ(times.step, Nanoseconds{9'000'000'000'001 - 100});
}

TEST_F(TraceFile, IsRefusedIfItIsNoneOrHasNoTraceOfThatSource) {
  const auto message = [&](const std::string& text) -> std::string {
    write(text);
    return pfeife::message_of([&] { read_action_times(file_, TraceSource::Estimated); });
  };
  EXPECT_MESSAGE(message("{"));
  EXPECT_MESSAGE(message("{}"));
  EXPECT_MESSAGE(message(R"({"traceEvents":[]})"));
  EXPECT_MESSAGE(message(R"({"traceEvents":[{"ph":7}]})"));
}

}  // namespace
}  // namespace pfeife
